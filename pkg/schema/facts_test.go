package schema

import (
	"slices"
	"strings"
	"testing"
)

func mustLookup(t *testing.T, name string) *Type {
	t.Helper()
	found, ok := Lookup(name)
	if !ok {
		t.Fatalf("%s is not known", name)
	}
	return found
}

func elements(path string) []string { return strings.Split(path, "/") }

// The facts below are from the CloudFormation user guide's resource reference, not from the sources that the
// index was generated from.
func TestReplacementOfWellKnownProperties(t *testing.T) {
	for _, fact := range []struct {
		name, path string
		want       Replacement
	}{
		{"AWS::S3::Bucket", "BucketName", ReplaceAlways},
		{"AWS::S3::Bucket", "VersioningConfiguration/Status", ReplaceNever},
		{"AWS::S3::Bucket", "Tags/0/Value", ReplaceNever},
		{"AWS::SQS::Queue", "QueueName", ReplaceAlways},
		{"AWS::SQS::Queue", "FifoQueue", ReplaceAlways},
		{"AWS::SQS::Queue", "VisibilityTimeout", ReplaceNever},
		{"AWS::SNS::Topic", "FifoTopic", ReplaceAlways},
		{"AWS::SNS::Topic", "DisplayName", ReplaceNever},
		{"AWS::Lambda::Function", "FunctionName", ReplaceAlways},
		{"AWS::Lambda::Function", "PackageType", ReplaceAlways},
		{"AWS::Lambda::Function", "Code/S3Key", ReplaceNever},
		{"AWS::Lambda::Function", "Environment/Variables/STAGE", ReplaceNever},
		{"AWS::Lambda::LayerVersion", "Content/S3Key", ReplaceAlways},
		{"AWS::Lambda::EventSourceMapping", "EventSourceArn", ReplaceAlways},
		{"AWS::DynamoDB::Table", "TableName", ReplaceAlways},
		{"AWS::DynamoDB::Table", "KeySchema/0/AttributeName", ReplaceAlways},
		{"AWS::DynamoDB::Table", "BillingMode", ReplaceNever},
		{"AWS::IAM::Role", "RoleName", ReplaceAlways},
		{"AWS::IAM::Role", "Path", ReplaceAlways},
		{"AWS::IAM::Role", "AssumeRolePolicyDocument/Statement/0/Action", ReplaceNever},
		{"AWS::IAM::ManagedPolicy", "Description", ReplaceAlways},
		{"AWS::EC2::VPC", "CidrBlock", ReplaceAlways},
		{"AWS::EC2::VPC", "InstanceTenancy", ReplaceMaybe},
		{"AWS::EC2::VPC", "EnableDnsSupport", ReplaceNever},
		{"AWS::EC2::Subnet", "AvailabilityZone", ReplaceAlways},
		{"AWS::EC2::Subnet", "MapPublicIpOnLaunch", ReplaceNever},
		{"AWS::EC2::Instance", "ImageId", ReplaceAlways},
		{"AWS::EC2::Instance", "InstanceType", ReplaceMaybe},
		{"AWS::EC2::SecurityGroup", "GroupDescription", ReplaceAlways},
		{"AWS::EC2::SecurityGroup", "SecurityGroupIngress/0/CidrIp", ReplaceNever},
		{"AWS::EC2::NatGateway", "SubnetId", ReplaceAlways},
		{"AWS::RDS::DBInstance", "DBInstanceIdentifier", ReplaceAlways},
		{"AWS::RDS::DBInstance", "StorageEncrypted", ReplaceAlways},
		{"AWS::RDS::DBInstance", "Engine", ReplaceMaybe},
		{"AWS::RDS::DBInstance", "AllocatedStorage", ReplaceNever},
		{"AWS::ECS::TaskDefinition", "ContainerDefinitions/0/Image", ReplaceAlways},
		{"AWS::ECS::Service", "DesiredCount", ReplaceNever},
		{"AWS::ECS::Service", "ServiceName", ReplaceAlways},
		{"AWS::KMS::Alias", "AliasName", ReplaceAlways},
		{"AWS::KMS::Key", "KeyPolicy/Statement", ReplaceNever},
		{"AWS::Logs::LogGroup", "LogGroupName", ReplaceAlways},
		{"AWS::Logs::LogGroup", "RetentionInDays", ReplaceNever},
		{"AWS::Kinesis::Stream", "Name", ReplaceAlways},
		{"AWS::SecretsManager::Secret", "Name", ReplaceAlways},
		{"AWS::SSM::Parameter", "Name", ReplaceAlways},
		{"AWS::StepFunctions::StateMachine", "StateMachineType", ReplaceAlways},
		{"AWS::ApiGatewayV2::Api", "ProtocolType", ReplaceAlways},
		{"AWS::ElasticLoadBalancingV2::LoadBalancer", "Scheme", ReplaceAlways},
		{"AWS::ElasticLoadBalancingV2::TargetGroup", "Port", ReplaceAlways},
		{"AWS::EFS::FileSystem", "Encrypted", ReplaceAlways},
		{"AWS::Route53::RecordSet", "Name", ReplaceAlways},
		{"AWS::CloudFront::Distribution", "DistributionConfig/Comment", ReplaceNever},
		{"AWS::Elasticsearch::Domain", "EncryptionAtRestOptions/KmsKeyId", ReplaceAlways},
		{"AWS::RDS::DBInstance", "Port", ReplaceNever},
		{"AWS::RDS::DBCluster", "AvailabilityZones/0", ReplaceAlways},
		{"AWS::ECS::Service", "DeploymentController/Type", ReplaceNever},
		{"AWS::ECS::Service", "LaunchType", ReplaceMaybe},
		{"AWS::EKS::Cluster", "ResourcesVpcConfig/SubnetIds/0", ReplaceNever},
		{"AWS::EKS::Cluster", "KubernetesNetworkConfig/ServiceIpv4Cidr", ReplaceAlways},
		{"AWS::Batch::JobQueue", "Tags/team", ReplaceNever},
		{"AWS::Events::Rule", "EventBusName", ReplaceAlways},
		{"AWS::Events::EventBus", "EventSourceName", ReplaceAlways},
		{"AWS::ElastiCache::ReplicationGroup", "Engine", ReplaceMaybe},
		{"AWS::Lambda::EventSourceMapping", "SelfManagedKafkaEventSourceConfig/ConsumerGroupId", ReplaceAlways},
		{"AWS::Transfer::Server", "IdentityProviderType", ReplaceNever},
		{"AWS::CertificateManager::Certificate", "ValidationMethod", ReplaceAlways},
		{"Custom::Anything", "ServiceToken", ReplaceAlways},
		{"Custom::Anything", "Whatever/Deep", ReplaceNever},
	} {
		if got := mustLookup(t, fact.name).Replacement(elements(fact.path)); got != fact.want {
			t.Errorf("%s %s: replacement %q, want %q", fact.name, fact.path, got, fact.want)
		}
	}
}

func TestReplacementFollowsPathsDownwardsOnly(t *testing.T) {
	one := &Type{
		CreateOnly:            []string{"Whole", "Part/Fixed", "Rules/*/Name"},
		ConditionalCreateOnly: []string{"Size", "Whole/Inner"},
		Replacements:          map[string]Replacement{"Size/Max": ReplaceAlways, "Kind": ReplaceMaybe},
	}
	for path, want := range map[string]Replacement{
		"Whole":        ReplaceAlways,
		"Whole/Inner":  ReplaceAlways, // always over maybe
		"Wholesale":    ReplaceNever,
		"Part":         ReplaceNever, // a create-only path below does not condemn its parent
		"Part/Fixed/x": ReplaceAlways,
		"Part/Free":    ReplaceNever,
		"Rules":        ReplaceNever,
		"Rules/3":      ReplaceNever,
		"Rules/3/Name": ReplaceAlways,
		"Rules/*/Name": ReplaceAlways,
		"Rules/3/Port": ReplaceNever,
		"Size":         ReplaceMaybe,
		"Size/Min":     ReplaceMaybe,
		"Size/Max":     ReplaceAlways, // the service specification over a milder registry
		"Kind/x":       ReplaceMaybe,
		"Unheard":      ReplaceNever,
	} {
		if got := one.Replacement(elements(path)); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if got := one.Replacement(nil); got != ReplaceNever {
		t.Errorf("the empty path: %q", got)
	}
}

func TestIdentifiersAttributesAndRef(t *testing.T) {
	for _, fact := range []struct{ name, identifier, ref, attributes string }{
		{"AWS::S3::Bucket", "BucketName", "BucketName", "Arn DomainName RegionalDomainName WebsiteURL"},
		{"AWS::SQS::Queue", "QueueUrl", "QueueUrl", "Arn QueueName QueueUrl"},
		{"AWS::SNS::Topic", "TopicArn", "TopicArn", "TopicArn TopicName"},
		{"AWS::Lambda::Function", "FunctionName", "FunctionName", "Arn SnapStartResponse.ApplyOn"},
		{"AWS::DynamoDB::Table", "TableName", "TableName", "Arn StreamArn"},
		{"AWS::IAM::Role", "RoleName", "RoleName", "Arn RoleId"},
		{"AWS::IAM::ManagedPolicy", "PolicyArn", "PolicyArn", "PolicyArn"},
		{"AWS::EC2::VPC", "VpcId", "VpcId", "CidrBlock DefaultSecurityGroup VpcId"},
		{"AWS::EC2::Subnet", "SubnetId", "SubnetId", "AvailabilityZone VpcId"},
		{"AWS::EC2::SecurityGroup", "Id", "Id", "GroupId VpcId"},
		{"AWS::EC2::EIP", "PublicIp|AllocationId", "PublicIp", "AllocationId"},
		{"AWS::RDS::DBInstance", "DBInstanceIdentifier", "DBInstanceIdentifier", "Endpoint.Address Endpoint.Port DBInstanceArn"},
		{"AWS::RDS::DBCluster", "DBClusterIdentifier", "DBClusterIdentifier", "Endpoint.Address ReadEndpoint.Address"},
		{"AWS::ECS::Service", "ServiceArn|Cluster", "ServiceArn", "Name"},
		{"AWS::ApiGateway::Resource", "RestApiId|ResourceId", "ResourceId", "ResourceId"},
		{"AWS::ApiGateway::RestApi", "RestApiId", "RestApiId", "RootResourceId"},
		{"AWS::WAFv2::WebACL", "Name|Id|Scope", "Name|Id|Scope", "Arn Id"},
		{"AWS::Events::Rule", "Arn", "EventBusName|Name", "Arn"},
		{"AWS::CloudFront::Distribution", "Id", "Id", "DomainName"},
		{"AWS::ElasticLoadBalancingV2::LoadBalancer", "LoadBalancerArn", "LoadBalancerArn", "DNSName CanonicalHostedZoneID"},
		{"AWS::StepFunctions::StateMachine", "Arn", "Arn", "Name"},
		{"AWS::ServiceCatalog::CloudFormationProvisionedProduct", "ProvisionedProductId", "ProvisionedProductId", "RecordId Outputs.Any"},
		{"AWS::SSM::Parameter", "Name", "Name", "Type Value Description"},
		{"AWS::CloudFormation::WaitCondition", "Id", "Id", "Data"},
		{"AWS::CloudFormation::Stack", "StackId", "StackId", "Outputs.Anything"},
		{"Custom::Anything", "", "Id", "Whatever.Its.Handler.Returns"},
	} {
		got := mustLookup(t, fact.name)
		if identifier := strings.Join(got.PrimaryIdentifier, "|"); identifier != fact.identifier {
			t.Errorf("%s: identifier %s, want %s", fact.name, identifier, fact.identifier)
		}
		if ref := strings.Join(got.RefPaths(), "|"); ref != fact.ref {
			t.Errorf("%s: Ref %s, want %s", fact.name, ref, fact.ref)
		}
		for _, attribute := range strings.Fields(fact.attributes) {
			if !got.IsAttribute(attribute) {
				t.Errorf("%s: attribute %s is not known", fact.name, attribute)
			}
		}
		if fact.name != "Custom::Anything" && got.IsAttribute("NoSuchThing") {
			t.Errorf("%s has an attribute NoSuchThing", fact.name)
		}
	}
}

func TestRefIsEitherOnePropertyOrSeveral(t *testing.T) {
	for _, name := range Names() {
		if got := mustLookup(t, name); got.RefProperty != "" && len(got.RefIdentifier) > 0 {
			t.Errorf("%s: Ref is both %s and %v", name, got.RefProperty, got.RefIdentifier)
		}
	}
}

// Reference §10.4 names types that Cloud Control can't provision. Those that still lack a create, read or delete
// handler in the registry are here; the rest have gained handlers since and are in the second list.
func TestWhatCloudControlCanProvision(t *testing.T) {
	for _, name := range strings.Fields(`
		AWS::AppMesh::Mesh AWS::AppMesh::VirtualNode AWS::DAX::Cluster AWS::DMS::ReplicationInstance AWS::Elasticsearch::Domain
		AWS::ElastiCache::SecurityGroup AWS::ElasticLoadBalancingV2::ListenerCertificate AWS::Glue::DevEndpoint
		AWS::Greengrass::Group AWS::KinesisAnalytics::Application AWS::LakeFormation::Permissions
		AWS::LakeFormation::DataLakeSettings AWS::LakeFormation::Resource AWS::MediaLive::Channel AWS::OpsWorks::Stack
		AWS::Pinpoint::App AWS::QLDB::Ledger AWS::RDS::DBSecurityGroup AWS::Route53::RecordSetGroup AWS::WAF::WebACL
		AWS::WAFRegional::WebACL AWS::IAM::Policy AWS::IAM::AccessKey AWS::IAM::UserToGroupAddition AWS::SQS::QueuePolicy
		AWS::SNS::TopicPolicy AWS::CodeBuild::Project AWS::DocDB::DBCluster AWS::FSx::FileSystem AWS::AppSync::GraphQLSchema
		AWS::CloudFormation::WaitCondition AWS::CloudFormation::WaitConditionHandle AWS::CloudFormation::CustomResource
		AWS::CDK::Metadata Custom::Anything AWS::Serverless::Function`) {
		if mustLookup(t, name).Provisionable {
			t.Errorf("%s is said to be provisionable", name)
		}
	}
	for _, name := range strings.Fields(`
		AWS::S3::Bucket AWS::SQS::Queue AWS::SNS::Topic AWS::Lambda::Function AWS::Lambda::LayerVersion AWS::DynamoDB::Table
		AWS::IAM::Role AWS::IAM::User AWS::IAM::ManagedPolicy AWS::EC2::VPC AWS::EC2::Instance AWS::RDS::DBInstance
		AWS::S3::BucketPolicy AWS::Route53::HostedZone AWS::CodeBuild::ReportGroup AWS::Glue::Classifier
		AWS::SageMaker::EndpointConfig AWS::ServiceDiscovery::Instance AWS::FSx::Volume`) {
		if !mustLookup(t, name).Provisionable {
			t.Errorf("%s is said not to be provisionable", name)
		}
	}
	immutable := mustLookup(t, "AWS::Lambda::LayerVersion")
	if immutable.Updatable {
		t.Error("a layer version is said to be updatable")
	}
}

func TestOtherFacts(t *testing.T) {
	function := mustLookup(t, "AWS::Lambda::Function")
	if !function.IsWriteOnly(elements("Code/ZipFile")) || function.IsWriteOnly(elements("Handler")) {
		t.Errorf("write-only of a function: %v", function.WriteOnly)
	}
	if !slices.Equal(function.Required, []string{"Code", "Role"}) {
		t.Errorf("required of a function: %v", function.Required)
	}
	for name, want := range map[string]bool{
		"AWS::S3::Bucket": true, "AWS::DynamoDB::Table": true, "AWS::RDS::DBInstance": true, "AWS::EFS::FileSystem": true,
		"AWS::Lambda::Function": false, "AWS::IAM::Role": false,
	} {
		if got := mustLookup(t, name).Stateful; got != want {
			t.Errorf("%s: stateful %v", name, got)
		}
	}
	for name, want := range map[string]string{
		"AWS::S3::Bucket": "Tags", "AWS::Cognito::UserPool": "UserPoolTags", "AWS::EFS::FileSystem": "FileSystemTags", "AWS::IAM::Policy": "",
	} {
		if got := mustLookup(t, name).TagProperty; got != want {
			t.Errorf("%s: tags in %q, want %q", name, got, want)
		}
	}
	if got := mustLookup(t, "AWS::SQS::Queue").ARN; got != "arn:${Partition}:sqs:${Region}:${Account}:${QueueName}" {
		t.Errorf("ARN of a queue: %s", got)
	}
	if !mustLookup(t, "AWS::EC2::SubnetRouteTableAssociation").DeleteBeforeCreate || function.DeleteBeforeCreate {
		t.Error("replacement order is wrong")
	}
}

func TestAtResolvesDefinitionsListsMapsAndAlternatives(t *testing.T) {
	for _, c := range []struct {
		name, path string
		want       PropertyKind
	}{
		{"AWS::S3::Bucket", "BucketName", KindString},
		{"AWS::S3::Bucket", "LifecycleConfiguration/Rules/0/ExpirationInDays", KindInteger},
		{"AWS::S3::Bucket", "LifecycleConfiguration/Rules/*/Transitions/2/StorageClass", KindString},
		{"AWS::S3::Bucket", "Arn", KindString},
		{"AWS::S3::Bucket", "MetadataConfiguration/Destination/TableBucketArn", KindString},
		{"AWS::DynamoDB::Table", "KeySchema/0/AttributeName", KindString},
		{"AWS::ECS::TaskDefinition", "ContainerDefinitions/0/LogConfiguration/Options/any", KindString},
		{"AWS::Lambda::Function", "Layers/1", KindString},
		{"AWS::RDS::DBInstance", "Endpoint/Address", KindString},
		{"AWS::S3::Bucket", "BucketName/Deeper", ""},
		{"AWS::S3::Bucket", "LifecycleConfiguration/Rules/first", ""},
		{"AWS::S3::Bucket", "Nothing", ""},
	} {
		got := mustLookup(t, c.name).At(elements(c.path))
		switch {
		case got == nil && c.want != "":
			t.Errorf("%s %s is not known", c.name, c.path)
		case got != nil && got.Kind != c.want:
			t.Errorf("%s %s is %s, want %q", c.name, c.path, got.Kind, c.want)
		}
	}
	queue := mustLookup(t, "AWS::SQS::Queue").At([]string{"KmsMasterKeyId"})
	if queue.RelationType != "AWS::KMS::Key" {
		t.Errorf("KmsMasterKeyId refers to %q", queue.RelationType)
	}
	if !mustLookup(t, "AWS::SQS::Queue").At([]string{"Tags"}).Unordered {
		t.Error("the order of tags is said to matter")
	}
	keys := mustLookup(t, "AWS::DynamoDB::Table").At([]string{"KeySchema"})
	if list := keys.Of(KindList); keys.Kind != KindUnion || list == nil || list.Elem.Kind != KindObject || keys.Of(KindMap) != nil {
		t.Errorf("the key schema's list: %+v", list)
	}
	if (*Property)(nil).Of(KindList) != nil {
		t.Error("nothing has a list")
	}
}
