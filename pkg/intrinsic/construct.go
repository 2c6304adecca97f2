package intrinsic

import (
	"fmt"
	"regexp"
	"strings"
)

// construct derives an attribute from the physical id, the account and the region, or returns nil. Only what
// AWS documents to be so composed is here (reference §7.3; the "Resource types defined by" tables of
// https://docs.aws.amazon.com/service-authorization/latest/reference/). Physical ids are those of reference §10.3
// and of Cloud Control alike.
func construct(p Pseudo, r Resource, name string) any {
	switch r.Type {
	case "AWS::S3::Bucket":
		return bucketAttribute(p, r.PhysicalID, name)
	case "AWS::SQS::Queue":
		return queueAttribute(p, r, name)
	case "AWS::Events::Rule":
		if name == "Arn" {
			return ruleARN(p, r)
		}
		return nil
	case "AWS::RDS::DBInstance":
		if name == "DBInstanceArn" {
			return p.arn("rds", "db:"+r.PhysicalID, r.PhysicalID)
		}
		return nil
	case "AWS::RDS::DBCluster":
		if name == "DBClusterArn" {
			return p.arn("rds", "cluster:"+r.PhysicalID, r.PhysicalID)
		}
		return nil
	}
	if prefix, path, ok := iamARN(r.Type, name); ok {
		return iamAttribute(p, r, prefix, path)
	}
	if service, resource, ok := arnRule(r.Type, name); ok {
		return p.arn(service, strings.ReplaceAll(resource, "{id}", r.PhysicalID), r.PhysicalID)
	}
	if idAttribute(r.Type, name) {
		return first(r.PhysicalID)
	}
	return otherAttribute(p, r, name)
}

// arn builds a regional ARN. An id that already is an ARN is returned as it is; one of several parts is no name.
func (p Pseudo) arn(service, resource, id string) any {
	if strings.HasPrefix(id, "arn:") {
		return id
	}
	if strings.Contains(id, "|") || p.AccountID == "" || p.Region == "" {
		return nil
	}
	return fmt.Sprintf("arn:%s:%s:%s:%s:%s", p.Partition, service, p.Region, p.AccountID, resource)
}

func first(id string) string {
	s, _, _ := strings.Cut(id, "|")
	return s
}

// arnRule gives service and resource part of an ARN; {id} stands for the physical id.
func arnRule(typ, name string) (service, resource string, ok bool) {
	rule := func(attribute, service, resource string) (string, string, bool) {
		return service, resource, name == attribute
	}
	switch typ {
	case "AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable":
		return rule("Arn", "dynamodb", "table/{id}")
	case "AWS::Lambda::Function":
		return rule("Arn", "lambda", "function:{id}")
	case "AWS::KMS::Key":
		return rule("Arn", "kms", "key/{id}")
	case "AWS::Cognito::UserPool":
		return rule("Arn", "cognito-idp", "userpool/{id}")
	case "AWS::Kinesis::Stream":
		return rule("Arn", "kinesis", "stream/{id}")
	case "AWS::KinesisFirehose::DeliveryStream":
		return rule("Arn", "firehose", "deliverystream/{id}")
	case "AWS::Events::EventBus":
		return rule("Arn", "events", "event-bus/{id}")
	case "AWS::EFS::FileSystem":
		return rule("Arn", "elasticfilesystem", "file-system/{id}")
	case "AWS::EFS::AccessPoint":
		return rule("Arn", "elasticfilesystem", "access-point/{id}")
	case "AWS::CodeBuild::Project":
		return rule("Arn", "codebuild", "project/{id}")
	case "AWS::CodeCommit::Repository":
		return "", "", false
	case "AWS::CloudTrail::Trail":
		return rule("Arn", "cloudtrail", "trail/{id}")
	case "AWS::AppSync::GraphQLApi":
		return rule("Arn", "appsync", "apis/{id}")
	case "AWS::ServiceDiscovery::PrivateDnsNamespace", "AWS::ServiceDiscovery::PublicDnsNamespace", "AWS::ServiceDiscovery::HttpNamespace":
		return rule("Arn", "servicediscovery", "namespace/{id}")
	case "AWS::ServiceDiscovery::Service":
		return rule("Arn", "servicediscovery", "service/{id}")
	case "AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm":
		return rule("Arn", "cloudwatch", "alarm:{id}")
	case "AWS::SNS::Topic":
		return rule("TopicArn", "sns", "{id}")
	case "AWS::Logs::LogGroup":
		return rule("Arn", "logs", "log-group:{id}:*")
	case "AWS::ECR::Repository":
		return rule("Arn", "ecr", "repository/{id}")
	case "AWS::ECS::Cluster":
		return rule("Arn", "ecs", "cluster/{id}")
	case "AWS::Scheduler::Schedule":
		return "", "", false // its ARN holds the group
	case "AWS::Backup::BackupVault":
		return rule("BackupVaultArn", "backup", "backup-vault:{id}")
	}
	return "", "", false
}

// idAttribute lists the attributes that repeat the physical id (the first part of it).
func idAttribute(typ, name string) bool {
	switch typ + "." + name {
	case "AWS::KMS::Key.KeyId", "AWS::EC2::SecurityGroup.GroupId", "AWS::EC2::SecurityGroup.Id", "AWS::EC2::VPC.VpcId", "AWS::EC2::Subnet.SubnetId",
		"AWS::EC2::RouteTable.RouteTableId", "AWS::EC2::InternetGateway.InternetGatewayId", "AWS::EC2::NatGateway.NatGatewayId",
		"AWS::EC2::Instance.InstanceId", "AWS::EC2::Volume.VolumeId", "AWS::EC2::NetworkInterface.Id", "AWS::EC2::LaunchTemplate.LaunchTemplateId",
		"AWS::EC2::EIP.PublicIp", "AWS::EC2::VPCEndpoint.Id",
		"AWS::ApiGateway::RestApi.RestApiId", "AWS::ApiGateway::Deployment.DeploymentId", "AWS::ApiGatewayV2::Api.ApiId",
		"AWS::ApiGatewayV2::Authorizer.AuthorizerId", "AWS::CloudFront::Distribution.Id", "AWS::CloudFront::CachePolicy.Id",
		"AWS::CloudFront::OriginAccessControl.Id", "AWS::CloudFront::OriginRequestPolicy.Id", "AWS::CloudFront::ResponseHeadersPolicy.Id",
		"AWS::CloudFront::CloudFrontOriginAccessIdentity.Id", "AWS::Cognito::UserPool.UserPoolId", "AWS::EFS::FileSystem.FileSystemId",
		"AWS::EFS::AccessPoint.AccessPointId", "AWS::Route53::HostedZone.Id", "AWS::ServiceDiscovery::PrivateDnsNamespace.Id",
		"AWS::ServiceDiscovery::PublicDnsNamespace.Id", "AWS::ServiceDiscovery::HttpNamespace.Id", "AWS::ServiceDiscovery::Service.Id",
		"AWS::AppSync::GraphQLApi.ApiId", "AWS::Events::EventBus.Name", "AWS::SecretsManager::Secret.Id", "AWS::Lambda::EventSourceMapping.Id",
		"AWS::ElasticLoadBalancingV2::LoadBalancer.LoadBalancerArn", "AWS::ElasticLoadBalancingV2::TargetGroup.TargetGroupArn",
		"AWS::ElasticLoadBalancingV2::Listener.ListenerArn", "AWS::ElasticLoadBalancingV2::ListenerRule.RuleArn",
		"AWS::StepFunctions::StateMachine.Arn", "AWS::SNS::Topic.TopicArn", "AWS::IAM::ManagedPolicy.PolicyArn", "AWS::ECS::Service.ServiceArn",
		"AWS::ECS::TaskDefinition.TaskDefinitionArn", "AWS::Lambda::Version.FunctionArn", "AWS::Lambda::LayerVersion.LayerVersionArn",
		"AWS::CertificateManager::Certificate.CertificateArn", "AWS::S3Express::DirectoryBucket.BucketName":
		return true
	}
	return false
}

// iamARN gives the resource prefix of an IAM entity's ARN and the property that holds its path.
func iamARN(typ, name string) (prefix, path string, ok bool) {
	if name != "Arn" {
		return "", "", false
	}
	switch typ {
	case "AWS::IAM::Role":
		return "role", "Path", true
	case "AWS::IAM::User":
		return "user", "Path", true
	case "AWS::IAM::Group":
		return "group", "Path", true
	case "AWS::IAM::InstanceProfile":
		return "instance-profile", "Path", true
	}
	return "", "", false
}

// iamAttribute builds arn:aws:iam::account:role/path/name. The path counts: cdkd leaves it out.
func iamAttribute(p Pseudo, r Resource, prefix, pathProperty string) any {
	if p.AccountID == "" || strings.Contains(r.PhysicalID, "|") {
		return nil
	}
	if strings.HasPrefix(r.PhysicalID, "arn:") {
		return r.PhysicalID
	}
	path, _ := r.Properties[pathProperty].(string)
	path = strings.Trim(path, "/")
	if path != "" {
		path += "/"
	}
	return fmt.Sprintf("arn:%s:iam::%s:%s/%s%s", p.Partition, p.AccountID, prefix, path, r.PhysicalID)
}

// bucketAttribute builds the names of a bucket
// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/WebsiteEndpoints.html,
// https://docs.aws.amazon.com/general/latest/gr/s3.html).
func bucketAttribute(p Pseudo, bucket, name string) any {
	switch name {
	case "Arn":
		return "arn:" + p.Partition + ":s3:::" + bucket
	case "DomainName":
		return bucket + ".s3." + p.URLSuffix
	case "RegionalDomainName":
		return bucket + ".s3." + p.Region + "." + p.URLSuffix
	case "DualStackDomainName":
		return bucket + ".s3.dualstack." + p.Region + "." + p.URLSuffix
	case "WebsiteURL":
		separator := "."
		switch p.Region {
		case "us-east-1", "us-west-1", "us-west-2", "eu-west-1", "ap-southeast-1", "ap-southeast-2", "ap-northeast-1", "sa-east-1", "us-gov-west-1":
			separator = "-" // the regions that are older than the dotted form
		}
		return "http://" + bucket + ".s3-website" + separator + p.Region + "." + p.URLSuffix
	}
	return nil
}

var queueURL = regexp.MustCompile(`^https?://[^/]+/(\d{12})/([^/]+)$`)

// queueAttribute reads a queue's attributes off its URL, which is its physical id.
func queueAttribute(p Pseudo, r Resource, name string) any {
	if strings.HasPrefix(r.PhysicalID, "arn:") {
		return nil
	}
	account, queue := p.AccountID, r.PhysicalID
	isURL := false
	if m := queueURL.FindStringSubmatch(r.PhysicalID); m != nil {
		account, queue, isURL = m[1], m[2], true
	} else if strings.Contains(r.PhysicalID, "/") {
		return nil
	}
	switch name {
	case "Arn":
		return fmt.Sprintf("arn:%s:sqs:%s:%s:%s", p.Partition, p.Region, account, queue)
	case "QueueName":
		return queue
	case "QueueUrl":
		if isURL {
			return r.PhysicalID
		}
		return fmt.Sprintf("https://sqs.%s.%s/%s/%s", p.Region, p.URLSuffix, account, queue)
	}
	return nil
}

// ruleARN is arn:…:rule/name, with the bus between when it is not the default one.
func ruleARN(p Pseudo, r Resource) any {
	id := r.PhysicalID
	if strings.HasPrefix(id, "arn:") {
		return id
	}
	if bus, rule, ok := strings.Cut(id, "|"); ok { // CloudFormation's own physical id
		return p.arn("events", "rule/"+bus+"/"+rule, bus)
	}
	bus, _ := r.Properties["EventBusName"].(string)
	if i := strings.LastIndexByte(bus, '/'); i >= 0 {
		bus = bus[i+1:]
	}
	if bus != "" && bus != "default" {
		id = bus + "/" + id
	}
	return p.arn("events", "rule/"+id, r.PhysicalID)
}

// otherAttribute holds what fits no table.
func otherAttribute(p Pseudo, r Resource, name string) any {
	id := r.PhysicalID
	switch r.Type + "." + name {
	case "AWS::SNS::Topic.TopicName", "AWS::StepFunctions::StateMachine.Name":
		if i := strings.LastIndexByte(id, ':'); i >= 0 && strings.HasPrefix(id, "arn:") {
			return id[i+1:]
		}
	case "AWS::ECS::Service.Name":
		if arn := first(id); strings.HasPrefix(arn, "arn:") {
			return arn[strings.LastIndexByte(arn, '/')+1:]
		}
	case "AWS::EC2::EIP.AllocationId":
		if _, allocation, ok := strings.Cut(id, "|"); ok {
			return allocation
		}
	case "AWS::ECR::Repository.RepositoryUri":
		if p.AccountID != "" {
			return fmt.Sprintf("%s.dkr.ecr.%s.%s/%s", p.AccountID, p.Region, p.URLSuffix, id)
		}
	case "AWS::EC2::VPC.CidrBlock", "AWS::EC2::Subnet.CidrBlock", "AWS::EC2::Subnet.AvailabilityZone", "AWS::EC2::Subnet.VpcId", "AWS::EC2::SecurityGroup.VpcId":
		if s, ok := r.Properties[name].(string); ok && s != "" {
			return s
		}
	case "AWS::S3Express::DirectoryBucket.Arn":
		return p.arn("s3express", "bucket/"+id, id)
	case "AWS::ApiGatewayV2::Api.ApiEndpoint":
		protocol, _ := r.Properties["ProtocolType"].(string)
		scheme := map[string]string{"HTTP": "https", "WEBSOCKET": "wss"}[protocol]
		if scheme != "" {
			return fmt.Sprintf("%s://%s.execute-api.%s.%s", scheme, id, p.Region, p.URLSuffix)
		}
	case "AWS::Cognito::UserPool.ProviderName":
		return fmt.Sprintf("cognito-idp.%s.%s/%s", p.Region, p.URLSuffix, id)
	case "AWS::Cognito::UserPool.ProviderURL":
		return fmt.Sprintf("https://cognito-idp.%s.%s/%s", p.Region, p.URLSuffix, id)
	}
	return nil
}
