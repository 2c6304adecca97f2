package cloudcontrol_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	api "github.com/aws/aws-sdk-go-v2/service/cloudcontrol"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/cloudcontrol"
	"github.com/slipway-cdk/slipway/pkg/provider/providertest"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
)

const (
	account = "123456789012"
	region  = "eu-west-1"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// serve starts a sandbox and returns its endpoint.
func serve(t testing.TB, opts sandbox.Options) string {
	t.Helper()
	opts.Seed = 11
	s, err := sandbox.Open(context.Background(), t.TempDir(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	endpoint, err := s.Serve()
	if err != nil {
		t.Fatal(err)
	}
	return endpoint
}

// open returns the provider on the real client, as a process has it.
func open(endpoint string, clk clock.Clock) *cloudcontrol.Provider {
	shared := sandbox.NewHTTPClient()
	return &cloudcontrol.Provider{Clock: clk, Client: cloudcontrol.Cached(func(account, region string) cloudcontrol.API {
		return api.New(api.Options{
			Region: region, BaseEndpoint: aws.String(endpoint), HTTPClient: shared,
			Credentials: credentials.NewStaticCredentialsProvider(account, "secret", ""),
			Retryer:     aws.NopRetryer{},
		})
	})}
}

func props(t testing.TB, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestConformance plays the life of resources through the real Cloud Control client: with operations that take their
// time, and with instant ones.
func TestConformance(t *testing.T) {
	t.Run("operations take time", func(t *testing.T) {
		clk := clock.NewFake(start)
		endpoint := serve(t, sandbox.Options{Speed: 1, Clock: clk})
		providertest.Run(t, subject(endpoint, clk, clk.Advance), cases(t))
	})
	t.Run("operations are instant", func(t *testing.T) {
		endpoint := serve(t, sandbox.Options{})
		providertest.Run(t, subject(endpoint, clock.Real{}, nil), cases(t))
	})
}

func subject(endpoint string, clk clock.Clock, pass func(time.Duration)) providertest.Subject {
	return providertest.Subject{
		Open:    func(*testing.T) provider.Provider { return open(endpoint, clk) },
		Account: account, Region: region, Pass: pass, Unsupported: "AWS::IAM::Policy",
	}
}

// cases are types with each peculiarity: names and random ids, composite identifiers, write-only, create-only and
// read-only parts, text where templates write numbers.
func cases(t testing.TB) []providertest.Case {
	p := func(text string) map[string]any { return props(t, text) }
	return []providertest.Case{
		{
			Name: "queue", Type: "AWS::SQS::Queue", Named: true,
			Properties: p(`{"QueueName":"orders","DelaySeconds":"5","SqsManagedSseEnabled":"false","Tags":[{"Key":"a","Value":1}]}`),
			Change:     p(`{"DelaySeconds":7,"VisibilityTimeout":"60","SqsManagedSseEnabled":true,"RedrivePolicy":{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:123456789012:dead","maxReceiveCount":3},"Tags":[]}`),
			Optional:   []string{"DelaySeconds", "Tags"}, CreateOnly: p(`{"QueueName":"other","FifoQueue":true}`),
			Invalid: p(`{"DelaySeconds":"soon","Tagz":[]}`), Attributes: []string{"Arn", "QueueUrl", "QueueName"},
		},
		{
			Name: "queue without a name", Type: "AWS::SQS::Queue", Properties: p(`{}`),
			Change: p(`{"DelaySeconds":7}`), Attributes: []string{"Arn"},
		},
		{
			Name: "topic", Type: "AWS::SNS::Topic", Named: true, Properties: p(`{"TopicName":"news","DisplayName":"News"}`),
			Change: p(`{"DisplayName":"More news","TracingConfig":"Active"}`), Optional: []string{"DisplayName"},
			CreateOnly: p(`{"TopicName":"other"}`), Invalid: p(`{"Subscription":"none"}`), Attributes: []string{"TopicArn"},
		},
		{
			Name: "bucket", Type: "AWS::S3::Bucket", Named: true,
			Properties: p(`{"BucketName":"one-of-a-kind","VersioningConfiguration":{"Status":"Enabled"},"LifecycleConfiguration":{"Rules":[{"Status":"Enabled","ExpirationInDays":"30"}]}}`),
			Change:     p(`{"VersioningConfiguration":{"Status":"Suspended"},"AccessControl":"Private"}`),
			Optional:   []string{"LifecycleConfiguration"}, CreateOnly: p(`{"BucketName":"another-kind"}`),
			Invalid: p(`{"VersioningConfiguration":{"Status":"Perhaps"}}`), Attributes: []string{"Arn", "DomainName"},
			HeldBy: func(attributes map[string]any) providertest.Case {
				return providertest.Case{Type: "AWS::S3::AccessPoint", Properties: map[string]any{"Name": "door", "Bucket": attributes["BucketName"]}}
			},
		},
		{
			Name: "function", Type: "AWS::Lambda::Function", Named: true,
			Properties: p(`{"FunctionName":"work","Role":"arn:aws:iam::123456789012:role/r","Runtime":"nodejs22.x","Handler":"index.handler","Timeout":"30","MemorySize":128,
				"Code":{"ZipFile":"exports.handler = 1"},"Environment":{"Variables":{"LIMIT":10,"DEBUG":true}}}`),
			Change:   p(`{"Timeout":60,"Code":{"ZipFile":"exports.handler = 2"},"Description":"works","Environment":{"Variables":{"LIMIT":"20"}}}`),
			Optional: []string{"Environment"}, CreateOnly: p(`{"FunctionName":"other","PackageType":"Image"}`),
			Invalid: p(`{"Role":"nobody-in-particular","MemorySize":"much"}`), Attributes: []string{"Arn"},
		},
		{
			Name: "role", Type: "AWS::IAM::Role", Named: true,
			Properties: p(`{"RoleName":"worker","Description":"d","AssumeRolePolicyDocument":{"Version":"2012-10-17","Statement":[]},"MaxSessionDuration":"3600"}`),
			Change:     p(`{"Description":"e","MaxSessionDuration":7200,"ManagedPolicyArns":["arn:aws:iam::aws:policy/ReadOnlyAccess"]}`),
			Optional:   []string{"Description"}, CreateOnly: p(`{"RoleName":"other","Path":"/x/"}`), Attributes: []string{"Arn", "RoleId"},
			HeldBy: func(attributes map[string]any) providertest.Case {
				return providertest.Case{Type: "AWS::IAM::InstanceProfile", Properties: map[string]any{"Roles": []any{attributes["RoleName"]}}}
			},
		},
		{
			Name: "table", Type: "AWS::DynamoDB::Table", Named: true,
			Properties: p(`{"TableName":"things","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],
				"PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":"true"}}`),
			Change:     p(`{"DeletionProtectionEnabled":"false","PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":false},"BillingMode":"PROVISIONED","ProvisionedThroughput":{"ReadCapacityUnits":"1","WriteCapacityUnits":1}}`),
			CreateOnly: p(`{"TableName":"other"}`), Invalid: p(`{"BillingMode":["FREE"]}`), Attributes: []string{"Arn"},
		},
		{
			Name: "VPC", Type: "AWS::EC2::VPC", Properties: p(`{"CidrBlock":"10.0.0.0/16","EnableDnsSupport":"true"}`),
			Change: p(`{"EnableDnsSupport":false,"EnableDnsHostnames":"true"}`), CreateOnly: p(`{"CidrBlock":"10.1.0.0/16"}`), Attributes: []string{"VpcId"},
			HeldBy: func(attributes map[string]any) providertest.Case {
				return providertest.Case{Type: "AWS::EC2::Subnet", Properties: map[string]any{"VpcId": attributes["VpcId"], "CidrBlock": "10.0.0.0/24"}}
			},
		},
		{
			Name: "security group", Type: "AWS::EC2::SecurityGroup",
			Properties: p(`{"GroupDescription":"d","SecurityGroupIngress":[{"IpProtocol":"tcp","FromPort":"443","ToPort":443,"CidrIp":"0.0.0.0/0"}]}`),
			Change:     p(`{"SecurityGroupIngress":[{"IpProtocol":-1,"CidrIp":"10.0.0.0/8"}]}`), Optional: []string{"SecurityGroupIngress"},
			CreateOnly: p(`{"GroupDescription":"e"}`), Attributes: []string{"GroupId"},
		},
		{
			Name: "log group", Type: "AWS::Logs::LogGroup", Named: true, Properties: p(`{"LogGroupName":"/app","RetentionInDays":"7"}`),
			Change: p(`{"RetentionInDays":14,"Tags":[{"Key":"k","Value":"v"}]}`), Optional: []string{"RetentionInDays"},
			CreateOnly: p(`{"LogGroupName":"/other"}`), Invalid: p(`{"RetentionInDays":8}`), Attributes: []string{"Arn"},
		},
		{
			Name: "log stream", Type: "AWS::Logs::LogStream", Named: true, Properties: p(`{"LogGroupName":"/elsewhere","LogStreamName":"s"}`),
			CreateOnly: p(`{"LogStreamName":"t"}`),
		},
		{
			Name: "secret", Type: "AWS::SecretsManager::Secret", Named: true, Properties: p(`{"Name":"key","SecretString":"first","Description":"d"}`),
			Change: p(`{"SecretString":"second","Description":"e"}`), Optional: []string{"Description"}, CreateOnly: p(`{"Name":"other"}`), Attributes: []string{"Id"},
		},
		{
			Name: "parameter", Type: "AWS::SSM::Parameter", Named: true, Properties: p(`{"Name":"/p","Type":"String","Value":5,"Description":"d"}`),
			Change: p(`{"Value":"6","Type":"StringList","Description":"e"}`), CreateOnly: p(`{"Name":"/q"}`), Invalid: p(`{"Type":"Number"}`),
		},
		{
			Name: "alarm", Type: "AWS::CloudWatch::Alarm", Named: true,
			Properties: p(`{"AlarmName":"hot","ComparisonOperator":"GreaterThanThreshold","EvaluationPeriods":"1","Threshold":"0.5","MetricName":"m","Namespace":"n","Period":60,"Statistic":"Sum"}`),
			Change:     p(`{"Threshold":1,"EvaluationPeriods":2,"Dimensions":[{"Name":"a","Value":7}]}`), CreateOnly: p(`{"AlarmName":"cold"}`), Attributes: []string{"Arn"},
		},
		{
			Name: "state machine", Type: "AWS::StepFunctions::StateMachine",
			Properties: p(`{"RoleArn":"arn:aws:iam::123456789012:role/r","DefinitionString":{"StartAt":"A","States":{"A":{"Type":"Succeed"}}}}`),
			Change:     p(`{"DefinitionString":{"StartAt":"B","States":{"B":{"Type":"Fail"}}},"TracingConfiguration":{"Enabled":"true"}}`), Attributes: []string{"Arn", "Name"},
		},
		{
			Name: "database", Type: "AWS::RDS::DBInstance", Named: true,
			Properties: p(`{"DBInstanceIdentifier":"db","DBInstanceClass":"db.t3.micro","Engine":"postgres","AllocatedStorage":20,"ManageMasterUserPassword":"true","MasterUsername":"admin1","MasterUserSecret":{"KmsKeyId":"one"}}`),
			Change:     p(`{"MasterUserSecret":{"KmsKeyId":"two"},"AllocatedStorage":"30"}`), Optional: []string{"MasterUserSecret"},
			CreateOnly: p(`{"DBInstanceIdentifier":"other"}`), Attributes: []string{"Endpoint.Address", "MasterUserSecret.SecretArn"},
		},
		{
			Name: "schedule", Type: "AWS::Scheduler::Schedule", Named: true,
			Properties: p(`{"Name":"daily","FlexibleTimeWindow":{"Mode":"OFF"},"ScheduleExpression":"rate(1 day)","Target":{"Arn":"arn:aws:sqs:eu-west-1:123456789012:q","RoleArn":"arn:aws:iam::123456789012:role/r","RetryPolicy":{"MaximumRetryAttempts":"3"}}}`),
			Change:     p(`{"ScheduleExpression":"rate(2 days)","State":"DISABLED"}`), CreateOnly: p(`{"Name":"other"}`), Attributes: []string{"Arn"},
		},
		{
			Name: "canary", Type: "AWS::Synthetics::Canary", Named: true,
			Properties: p(`{"Name":"bird","ArtifactS3Location":"s3://b","ExecutionRoleArn":"arn:aws:iam::123456789012:role/r","RuntimeVersion":"syn-nodejs-puppeteer-9.1","Schedule":{"Expression":"rate(1 hour)"},
				"Code":{"Handler":"h.handler","Script":"one"}}`),
			Change:     p(`{"Code":{"Handler":"h.handler","Script":"two"},"Schedule":{"Expression":"rate(2 hours)","DurationInSeconds":0}}`),
			CreateOnly: p(`{"Name":"other"}`), Attributes: []string{"Id", "Code.SourceLocationArn"},
		},
	}
}

// A deletion of what its owner has taken along is done: nobody has to know in which order services delete.
func TestWhatWentWithItsOwnerIsDone(t *testing.T) {
	clk := clock.NewFake(start)
	p := open(serve(t, sandbox.Options{Clock: clk}), clk)
	do := func(step func(context.Context, provider.Request) (provider.Progress, error), req provider.Request) provider.Progress {
		t.Helper()
		req.Account, req.Region, req.LogicalID = account, region, req.Type
		progress, err := step(t.Context(), req)
		for err == nil && !progress.Done {
			progress, err = p.Poll(t.Context(), req, *progress.Handle)
		}
		if err != nil {
			t.Fatalf("%s: %v", req.Type, err)
		}
		return progress
	}
	group := do(p.Create, provider.Request{Type: "AWS::Logs::LogGroup", Token: "1", Properties: props(t, `{"LogGroupName":"/g"}`)})
	stream := do(p.Create, provider.Request{Type: "AWS::Logs::LogStream", Token: "2", Properties: props(t, `{"LogGroupName":"/g","LogStreamName":"s"}`)})
	do(p.Delete, provider.Request{Type: "AWS::Logs::LogGroup", Token: "3", PhysicalID: group.PhysicalID})
	if _, err := p.Read(t.Context(), provider.Request{Account: account, Region: region, Type: "AWS::Logs::LogStream", PhysicalID: stream.PhysicalID}); !provider.IsNotFound(err) {
		t.Errorf("the stream of a deleted group: %v", err)
	}
	do(p.Delete, provider.Request{Type: "AWS::Logs::LogStream", Token: "4", PhysicalID: stream.PhysicalID})
}
