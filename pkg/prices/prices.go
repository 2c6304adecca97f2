// Package prices is the table of what AWS charges for the parts of a control plane: list prices of us-east-1 in US dollars,
// without the free tiers.
//
// They were compared on 2026-11-30 with stored copies of public pages. AWS's own pages have, in a copy, the price of state
// transitions and of keys; they load the other tables when they are shown, so that no copy has them, and those prices are
// as several price guides of 2025 and 2026 agree on. No price was found to be another one.
package prices

// Price is what one unit costs.
type Price struct {
	Of   string  // the service
	Each float64 // US dollars
	Unit string
	// Source is the page that has it.
	Source string
}

// The units that are charged.
const (
	Transition = "transition"
	Invocation = "invocation"
	GBSecond   = "gbsecond"
	Write      = "write"
	Read       = "read"
	Put        = "put"
	Get        = "get"
	KeyUse     = "kms"
	Key        = "key"
	Alarm      = "alarm"
	Dashboard  = "dashboard"
	Metric     = "metric"
	Logged     = "logged"
)

// Table is all prices, by what is charged.
func Table() map[string]Price {
	return map[string]Price{
		Transition: {"Step Functions", 0.025 / 1e3, "state transition", "https://aws.amazon.com/step-functions/pricing/"},
		Invocation: {"Lambda", 0.20 / 1e6, "request", "https://aws.amazon.com/lambda/pricing/"},
		GBSecond:   {"Lambda, arm64", 0.0000133334, "GB-second", "https://aws.amazon.com/lambda/pricing/"},
		Write:      {"DynamoDB, on demand", 0.625 / 1e6, "write request unit", "https://aws.amazon.com/dynamodb/pricing/on-demand/"},
		Read:       {"DynamoDB, on demand", 0.125 / 1e6, "read request unit", "https://aws.amazon.com/dynamodb/pricing/on-demand/"},
		Put:        {"S3", 0.005 / 1e3, "PUT, COPY, POST or LIST", "https://aws.amazon.com/s3/pricing/"},
		Get:        {"S3", 0.0004 / 1e3, "GET or HEAD", "https://aws.amazon.com/s3/pricing/"},
		KeyUse:     {"KMS", 0.03 / 1e4, "request", "https://aws.amazon.com/kms/pricing/"},
		// A key that is rotated costs as much again for each of its first two rotations.
		Key:       {"KMS", 1, "key and month", "https://aws.amazon.com/kms/pricing/"},
		Alarm:     {"CloudWatch", 0.10, "alarm and month", "https://aws.amazon.com/cloudwatch/pricing/"},
		Dashboard: {"CloudWatch", 3, "dashboard and month (three are free)", "https://aws.amazon.com/cloudwatch/pricing/"},
		Metric:    {"CloudWatch", 0.30, "metric and month, by the hours in which it is written", "https://aws.amazon.com/cloudwatch/pricing/"},
		Logged:    {"CloudWatch Logs", 0.50, "GB of log taken in", "https://aws.amazon.com/cloudwatch/pricing/"},
	}
}

// AtRest is what a resource of a type costs a month while nothing runs. What is charged by use (tables on demand,
// functions, state machines, queues, requests) costs nothing at rest but storage.
func AtRest(typeName string) float64 {
	switch typeName {
	case "AWS::KMS::Key":
		return Table()[Key].Each
	case "AWS::CloudWatch::Alarm":
		return Table()[Alarm].Each
	case "AWS::CloudWatch::Dashboard":
		return Table()[Dashboard].Each
	}
	return 0
}
