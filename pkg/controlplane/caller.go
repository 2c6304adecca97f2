package controlplane

import (
	"github.com/slipway-cdk/slipway/pkg/iampolicy"
	"github.com/slipway-cdk/slipway/pkg/runlog/dynamo"
)

// CallerScope is what the policy of callers is about. Its ARNs may hold what a template puts in later.
type CallerScope struct {
	// Plane is the name of the control plane.
	Plane                      string
	Partition, Region, Account string
	StateMachine               string // ARN
	Table                      string // name
	UploadsBucket              string // name
	VaultKey                   string // ARN; "" for none
	// UploadsKey is the ARN of the KMS key of the uploads bucket, "" for S3's own.
	UploadsKey string
	// TableKey is the ARN of the KMS key of the table, "" for DynamoDB's own.
	TableKey string
}

// Scope is the scope of the policy of this control plane's callers; plane is its name.
func (d Descriptor) Scope(plane string) CallerScope {
	return CallerScope{
		Plane: plane, Partition: d.Partition(), Region: d.Region, Account: d.Account, StateMachine: d.StateMachine,
		Table: d.Table, UploadsBucket: d.UploadsBucket, VaultKey: d.VaultKey,
	}
}

const (
	// UploadsPrefix is where callers put assemblies: each below its own id.
	UploadsPrefix = "uploads/"
	// InboxPrefix is where an assembly starts its own deployment when it is put there: below the name of the inbox.
	InboxPrefix = "inbox/"
	// callerID is what IAM knows a caller by, and puts in place of this in a policy: "AIDA…" for a user,
	// "AROA…:session" for a role
	// (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html#principaltable).
	callerID = "${aws:userid}"
)

// The statements that there are only with keys of the team's own.
const (
	UploadsKeyStatement = "UploadsKey"
	TableKeyStatement   = "TableKey"
)

// CallerPolicy is the IAM policy of those who deploy through a control plane, and no more than they need: find the
// control plane, put assemblies below their own prefix, start runs and read what is told of them. Nobody may list the
// bucket, so S3 says 403 of what is absent. It gives no permission for what is
// deployed: that is the execution roles'. Who may deploy which stack is the server's policy, not this one's.
func CallerPolicy(s CallerScope) iampolicy.Document {
	arn := func(service, resource string) string {
		return "arn:" + s.Partition + ":" + service + ":" + s.Region + ":" + s.Account + ":" + resource
	}
	bucket := "arn:" + s.Partition + ":s3:::" + s.UploadsBucket
	table := arn("dynamodb", "table/"+s.Table)
	readable := []string{dynamo.RunPartitions + "*", dynamo.StackPartitions + "*"}
	statements := []iampolicy.Statement{
		iampolicy.Allow("FindControlPlane", []string{"ssm:GetParameter"}, arn("ssm", "parameter"+DescriptorParameter(s.Plane))),
		iampolicy.Allow("Upload", []string{"s3:PutObject", "s3:GetObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"},
			bucket+"/"+UploadsPrefix+callerID+"/*"),
		iampolicy.Allow("StartRuns", []string{"states:StartExecution"}, s.StateMachine),
		// Headers and events. The operation journal has partitions of other names: it holds properties.
		iampolicy.Allow("FollowRuns", []string{"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query"}, table).
			If("ForAllValues:StringLike", "dynamodb:LeadingKeys", readable...),
		iampolicy.Allow("ListRuns", []string{"dynamodb:Query"}, table+"/index/"+dynamo.RunsIndex, table+"/index/"+dynamo.OpenIndex).
			If("ForAllValues:StringEquals", "dynamodb:LeadingKeys", dynamo.RunsPartition),
	}
	if s.VaultKey != "" {
		// The values of NoEcho parameters are sealed before they are uploaded; only the control plane opens them.
		statements = append(statements, iampolicy.Allow("SealParameters", []string{"kms:GenerateDataKey"}, s.VaultKey).
			If("StringLike", "kms:EncryptionContext:slipway:context", UploadsPrefix+callerID+"/*"))
	}
	if s.UploadsKey != "" {
		statements = append(statements, iampolicy.Allow(UploadsKeyStatement, []string{"kms:GenerateDataKey", "kms:Decrypt"}, s.UploadsKey).
			If("StringLike", "kms:ViaService", "s3."+s.Region+".amazonaws.com*"))
	}
	if s.TableKey != "" {
		statements = append(statements, iampolicy.Allow(TableKeyStatement, []string{"kms:Decrypt"}, s.TableKey).
			If("StringLike", "kms:ViaService", "dynamodb."+s.Region+".amazonaws.com*"))
	}
	return iampolicy.New(statements...)
}
