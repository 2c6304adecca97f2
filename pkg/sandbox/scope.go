package sandbox

import "strings"

// Caller is on whose behalf a request is made, as its credentials and their scope say.
type Caller struct {
	Account string
	Region  string
}

// DefaultAccount is the account of a caller whose access key id is not an account id.
const DefaultAccount = "123456789012"

// GlobalRegion stands for the region of a resource of a global service.
const GlobalRegion = "global"

// partition is the first member of an ARN and the suffix of DNS names in a region
// (https://docs.aws.amazon.com/whitepapers/latest/aws-fault-isolation-boundaries/partitions.html).
func partition(region string) (name, suffix string) {
	for _, p := range []struct{ prefix, name, suffix string }{
		{"cn-", "aws-cn", "amazonaws.com.cn"},
		{"us-gov-", "aws-us-gov", "amazonaws.com"},
		{"us-isob-", "aws-iso-b", "sc2s.sgov.gov"},
		{"us-isof-", "aws-iso-f", "csp.hci.ic.gov"},
		{"us-iso-", "aws-iso", "c2s.ic.gov"},
		{"eu-isoe-", "aws-iso-e", "cloud.adc-e.uk"},
		{"eusc-", "aws-eusc", "amazonaws.eu"},
	} {
		if strings.HasPrefix(region, p.prefix) {
			return p.name, p.suffix
		}
	}
	return "aws", "amazonaws.com"
}

// isGlobal reports whether a type belongs to a service without regions: its resources are seen from every region.
func isGlobal(typeName string) bool {
	switch service(typeName) {
	case "IAM", "Route53", "CloudFront", "Organizations", "GlobalAccelerator", "NetworkManager", "Budgets", "CE",
		"Shield", "BillingConductor", "Billing", "BCMDataExports", "CUR", "Invoicing":
		return true
	}
	return false
}

// scopeOf is the region under which a caller's resources of a type are kept.
func (c Caller) scopeOf(typeName string) string {
	if isGlobal(typeName) {
		return GlobalRegion
	}
	return c.Region
}

// service is the middle word of a type name: "SQS" of "AWS::SQS::Queue".
func service(typeName string) string {
	parts := strings.Split(typeName, "::")
	if len(parts) < 2 {
		return ""
	}
	return parts[1]
}

// word is the last word of a type name: "Queue" of "AWS::SQS::Queue".
func word(typeName string) string {
	return typeName[strings.LastIndex(typeName, ":")+1:]
}
