package gen

func customResource(a *app) {
	s := a.stack("CustomResource")
	greeting := "hello"
	if a.since(2) {
		greeting = "hello again"
	}
	s.role("HandlerRole", "lambda.amazonaws.com", lambdaBasics)
	s.table("Table", "id", nil)
	s.policy("HandlerPolicy", "HandlerRole", allow(texts("dynamodb:PutItem", "dynamodb:DeleteItem"), att("Table", "Arn")))
	s.function("Handler", "HandlerRole", object{"Timeout": 60, "Environment": object{"Variables": object{"TABLE": ref("Table")}}}, dependsOn("HandlerPolicy", "HandlerRole"))
	s.add("Seed", "Custom::Seed", object{
		"ServiceToken": att("Handler", "Arn"), "Table": ref("Table"), "Greeting": greeting, "Count": 3, "Enabled": true,
		"Rows": list{object{"id": "1", "text": join(" ", greeting, ref("AWS::Region"))}},
	}, deletionPolicy("Delete"))
	s.add("Second", "AWS::CloudFormation::CustomResource", object{"ServiceToken": att("Handler", "Arn"), "After": ref("Seed"), "Token": att("Seed", "Token")}, deletionPolicy("Delete"))
	s.parameterOf("Result", sub("${Seed.Token} of ${Seed}"))
	s.output("Seed", att("Seed", "Token"))
}

func indirectTypes(a *app) {
	s := a.stack("IndirectTypes")
	s.topic("Topic", nil)
	s.queue("Queue", nil)
	s.add("TopicPolicy", "AWS::SNS::TopicPolicy", object{"Topics": list{ref("Topic")}, "PolicyDocument": object{"Version": "2012-10-17", "Statement": list{
		object{"Sid": "events", "Effect": "Allow", "Principal": object{"Service": "events.amazonaws.com"}, "Action": "sns:Publish", "Resource": ref("Topic")},
	}}})
	s.add("QueuePolicy", "AWS::SQS::QueuePolicy", object{"Queues": list{ref("Queue")}, "PolicyDocument": object{"Version": "2012-10-17", "Statement": list{
		object{"Effect": "Allow", "Principal": object{"Service": "sns.amazonaws.com"}, "Action": "sqs:SendMessage", "Resource": att("Queue", "Arn"),
			"Condition": object{"ArnEquals": object{"aws:SourceArn": ref("Topic")}}},
	}}})
	s.add("Subscription", "AWS::SNS::Subscription", object{"TopicArn": ref("Topic"), "Protocol": "sqs", "Endpoint": att("Queue", "Arn")}, dependsOn("QueuePolicy"))
	s.role("BuildRole", "codebuild.amazonaws.com")
	s.policy("BuildPolicy", "BuildRole", allow(texts("logs:PutLogEvents"), "*"))
	s.add("Build", "AWS::CodeBuild::Project", object{
		"ServiceRole": att("BuildRole", "Arn"), "Artifacts": object{"Type": "NO_ARTIFACTS"},
		"Environment": object{"Type": "ARM_CONTAINER", "ComputeType": "BUILD_GENERAL1_SMALL", "Image": "aws/codebuild/amazonlinux2-aarch64-standard:3.0"},
		"Source":      object{"Type": "NO_SOURCE", "BuildSpec": "version: 0.2\nphases:\n  build:\n    commands: [\"true\"]\n"},
	})
	s.output("Build", ref("Build"))
}

func httpAPI(a *app) {
	s := a.stack("HttpApi")
	code, path := "exports.handler = async () => ({ statusCode: 200, body: 'one' });\n", "/hello"
	if a.since(2) {
		code, path = "exports.handler = async () => ({ statusCode: 200, body: 'two' });\n", "/hello/{name}"
	}
	bucket, key := s.directory("Handler/Code", map[string]string{"index.js": code, "lib/util.js": "module.exports = {};\n"})
	s.role("Role", "lambda.amazonaws.com", lambdaBasics)
	s.logGroup("Logs", 7)
	s.function("Handler", "Role", object{"Code": object{"S3Bucket": bucket, "S3Key": key}, "LoggingConfig": object{"LogGroup": ref("Logs")}})
	s.add("Api", "AWS::ApiGatewayV2::Api", object{"Name": "gen-http-api", "ProtocolType": "HTTP",
		"CorsConfiguration": object{"AllowOrigins": texts("*"), "AllowMethods": texts("GET"), "MaxAge": 600}})
	s.add("Integration", "AWS::ApiGatewayV2::Integration", object{"ApiId": ref("Api"), "IntegrationType": "AWS_PROXY", "IntegrationUri": att("Handler", "Arn"), "PayloadFormatVersion": "2.0"})
	s.add("Route", "AWS::ApiGatewayV2::Route", object{"ApiId": ref("Api"), "RouteKey": "GET " + path, "Target": join("", "integrations/", ref("Integration"))})
	s.add("Stage", "AWS::ApiGatewayV2::Stage", object{"ApiId": ref("Api"), "StageName": "$default", "AutoDeploy": true})
	s.permission("Invoke", "Handler", "apigateway.amazonaws.com", join("", "arn:", ref("AWS::Partition"), ":execute-api:", ref("AWS::Region"), ":", ref("AWS::AccountId"), ":", ref("Api"), "/*/*"+path))
	s.output("Url", att("Api", "ApiEndpoint"))
}

func restAPI(a *app) {
	s := a.stack("RestApi")
	s.add("Api", "AWS::ApiGateway::RestApi", object{"Name": "gen-rest-api", "EndpointConfiguration": object{"Types": texts("REGIONAL")}})
	parent := att("Api", "RootResourceId")
	for _, part := range []string{"V1", "Shops", "Shop", "Orders"} {
		path := object{"V1": "v1", "Shops": "shops", "Shop": "{shop}", "Orders": "orders"}[part]
		s.add(part, "AWS::ApiGateway::Resource", object{"RestApiId": ref("Api"), "ParentId": parent, "PathPart": path})
		parent = ref(part)
	}
	var methods []string
	for _, on := range []string{"Shops", "Shop", "Orders"} {
		methods = append(methods, s.add("Get"+on, "AWS::ApiGateway::Method", object{
			"RestApiId": ref("Api"), "ResourceId": ref(on), "HttpMethod": "GET", "AuthorizationType": "NONE",
			"Integration": object{"Type": "MOCK", "RequestTemplates": object{"application/json": `{"statusCode": 200}`},
				"IntegrationResponses": list{object{"StatusCode": "200"}}},
			"MethodResponses": list{object{"StatusCode": "200"}},
		}))
	}
	s.add("Deployment", "AWS::ApiGateway::Deployment", object{"RestApiId": ref("Api"), "Description": "first"}, dependsOn(methods...))
	s.add("Stage", "AWS::ApiGateway::Stage", object{"RestApiId": ref("Api"), "DeploymentId": ref("Deployment"), "StageName": "prod",
		"MethodSettings": list{object{"ResourcePath": "/*", "HttpMethod": "*", "ThrottlingBurstLimit": 10, "ThrottlingRateLimit": 5}}})
	s.output("Url", sub("https://${Api}.execute-api.${AWS::Region}.${AWS::URLSuffix}/${Stage}/v1/shops"))
}

// subnets adds a network and n subnets in it, and returns references to them.
func (s *stack) subnets(block string, n int) list {
	s.add("Vpc", "AWS::EC2::VPC", object{"CidrBlock": block, "Tags": tags("Name", sub("${AWS::StackName}/Vpc"))})
	var out list
	for i := range n {
		id := s.add("Subnet"+string(rune('A'+i)), "AWS::EC2::Subnet", object{
			"VpcId": ref("Vpc"), "CidrBlock": pick(i, cidr(block, n, 12)), "AvailabilityZone": pick(i, zones("")),
		})
		out = append(out, ref(id))
	}
	return out
}

func network(a *app) {
	s := a.stack("Network")
	s.add("Vpc", "AWS::EC2::VPC", object{"CidrBlock": "10.60.0.0/16", "EnableDnsHostnames": true, "EnableDnsSupport": true, "Tags": tags("Name", "gen-network")})
	s.add("Gateway", "AWS::EC2::InternetGateway", nil)
	s.add("Attachment", "AWS::EC2::VPCGatewayAttachment", object{"VpcId": ref("Vpc"), "InternetGatewayId": ref("Gateway")})
	for i, zone := range []string{"A", "B"} {
		for j, kind := range []string{"Public", "Private"} {
			id := kind + zone
			s.add(id, "AWS::EC2::Subnet", object{
				"VpcId": ref("Vpc"), "AvailabilityZone": pick(i, zones("")), "CidrBlock": pick(2*i+j, cidr(att("Vpc", "CidrBlock"), 4, 10)),
				"MapPublicIpOnLaunch": kind == "Public", "Tags": tags("Name", sub("${AWS::StackName}/"+id)),
			})
			s.add(id+"Table", "AWS::EC2::RouteTable", object{"VpcId": ref("Vpc")})
			s.add(id+"Association", "AWS::EC2::SubnetRouteTableAssociation", object{"SubnetId": ref(id), "RouteTableId": ref(id + "Table")})
		}
		s.add("Internet"+zone, "AWS::EC2::Route", object{"RouteTableId": ref("Public" + zone + "Table"), "DestinationCidrBlock": "0.0.0.0/0", "GatewayId": ref("Gateway")}, dependsOn("Attachment"))
	}
	s.add("Address", "AWS::EC2::EIP", object{"Domain": "vpc"}, dependsOn("Attachment"))
	s.add("Nat", "AWS::EC2::NatGateway", object{"SubnetId": ref("PublicA"), "AllocationId": att("Address", "AllocationId")}, dependsOn("InternetA", "PublicAAssociation"))
	for _, zone := range []string{"A", "B"} {
		s.add("Outward"+zone, "AWS::EC2::Route", object{"RouteTableId": ref("Private" + zone + "Table"), "DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": ref("Nat")})
	}
	s.add("Web", "AWS::EC2::SecurityGroup", object{"VpcId": ref("Vpc"), "GroupDescription": "web servers",
		"SecurityGroupIngress": list{object{"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "CidrIp": "0.0.0.0/0"}}})
	s.add("App", "AWS::EC2::SecurityGroup", object{"VpcId": ref("Vpc"), "GroupDescription": "application servers"})
	s.add("FromWeb", "AWS::EC2::SecurityGroupIngress", object{"GroupId": att("App", "GroupId"), "SourceSecurityGroupId": att("Web", "GroupId"), "IpProtocol": "tcp", "FromPort": 8080, "ToPort": 8080})
	s.add("Storage", "AWS::EC2::VPCEndpoint", object{"VpcId": ref("Vpc"), "VpcEndpointType": "Gateway",
		"ServiceName": join("", "com.amazonaws.", ref("AWS::Region"), ".s3"), "RouteTableIds": list{ref("PrivateATable"), ref("PrivateBTable")}})
	s.output("Vpc", ref("Vpc"))
	s.output("Private", join(",", ref("PrivateA"), ref("PrivateB")))
}

func fileAssets(a *app) {
	s := a.stack("FileAssets")
	s.role("Role", "lambda.amazonaws.com", lambdaBasics)
	code := map[string]string{"index.js": "exports.handler = async () => require('./data/words.json');\n", "data/words.json": "[\"ein\", \"zwei\"]\n", "data/empty.txt": ""}
	bucket, key := s.directory("Shared/Code", code)
	for _, id := range []string{"Reader", "Writer"} {
		s.function(id, "Role", object{"Code": object{"S3Bucket": bucket, "S3Key": key}})
	}
	layer, layerKey := s.directory("Layer/Code", map[string]string{"nodejs/node_modules/tiny/index.js": "module.exports = 1;\n"})
	s.add("Layer", "AWS::Lambda::LayerVersion", object{"Content": object{"S3Bucket": layer, "S3Key": layerKey}, "CompatibleRuntimes": texts("nodejs22.x")})
	config, configKey := s.file("config.json", ".json", "{\"greeting\": \"hello\"}\n")
	s.parameterOf("Config", join("/", "s3:/", config, configKey))
	s.output("Layer", ref("Layer"))
}

func encrypted(a *app) {
	s := a.stack("Encrypted")
	s.add("Key", "AWS::KMS::Key", object{"EnableKeyRotation": true, "Description": "of everything here", "KeyPolicy": object{"Version": "2012-10-17", "Statement": list{
		object{"Sid": "owner", "Effect": "Allow", "Principal": object{"AWS": join("", "arn:", ref("AWS::Partition"), ":iam::", ref("AWS::AccountId"), ":root")}, "Action": "kms:*", "Resource": "*"},
	}}}, deletionPolicy("Delete"))
	s.add("Alias", "AWS::KMS::Alias", object{"AliasName": "alias/gen-encrypted", "TargetKeyId": att("Key", "Arn")})
	s.queue("Queue", object{"KmsMasterKeyId": att("Key", "Arn"), "KmsDataKeyReusePeriodSeconds": 300})
	s.topic("Topic", object{"KmsMasterKeyId": ref("Key")})
	s.table("Table", "id", object{"SSESpecification": object{"SSEEnabled": true, "SSEType": "KMS", "KMSMasterKeyId": att("Key", "Arn")}})
	s.bucket("Bucket", object{"BucketEncryption": object{"ServerSideEncryptionConfiguration": list{
		object{"BucketKeyEnabled": true, "ServerSideEncryptionByDefault": object{"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": att("Key", "Arn")}}}}})
	s.add("BucketPolicy", "AWS::S3::BucketPolicy", object{"Bucket": ref("Bucket"), "PolicyDocument": object{"Version": "2012-10-17", "Statement": list{
		object{"Effect": "Deny", "Principal": object{"AWS": "*"}, "Action": "s3:*", "Resource": list{att("Bucket", "Arn"), join("", att("Bucket", "Arn"), "/*")},
			"Condition": object{"Bool": object{"aws:SecureTransport": "false"}}},
	}}})
	s.add("Secret", "AWS::SecretsManager::Secret", object{"KmsKeyId": att("Key", "Arn"), "GenerateSecretString": object{"PasswordLength": 24, "ExcludePunctuation": true}}, deletionPolicy("Delete"))
	s.add("Stream", "AWS::Kinesis::Stream", object{"StreamModeDetails": object{"StreamMode": "ON_DEMAND"}, "StreamEncryption": object{"EncryptionType": "KMS", "KeyId": att("Key", "Arn")}})
	s.add("Logs", "AWS::Logs::LogGroup", object{"RetentionInDays": 30, "KmsKeyId": att("Key", "Arn")}, deletionPolicy("Delete"))
}

func workflow(a *app) {
	s := a.stack("Workflow")
	wait := 5
	if a.since(2) {
		wait = 10
	}
	s.add("Bus", "AWS::Events::EventBus", object{"Name": "gen-workflow"})
	s.logGroup("Logs", 3)
	s.role("MachineRole", "states.amazonaws.com")
	s.queue("Done", nil)
	s.policy("MachinePolicy", "MachineRole", allow(texts("sqs:SendMessage"), att("Done", "Arn")))
	s.add("Machine", "AWS::StepFunctions::StateMachine", object{
		"StateMachineType": "STANDARD", "RoleArn": att("MachineRole", "Arn"),
		"DefinitionString": subWith(`{"StartAt":"Wait","States":{"Wait":{"Type":"Wait","Seconds":${Wait},"Next":"Send"},"Send":{"Type":"Task","Resource":"arn:${AWS::Partition}:states:::sqs:sendMessage","Parameters":{"QueueUrl":"${Url}","MessageBody.$":"$"},"End":true}}}`,
			object{"Wait": wait, "Url": ref("Done")}),
		"Tags": tags("bus", att("Bus", "Arn")),
	}, dependsOn("MachinePolicy"))
	s.role("RuleRole", "events.amazonaws.com")
	s.policy("RulePolicy", "RuleRole", allow(texts("states:StartExecution"), ref("Machine")))
	s.add("Rule", "AWS::Events::Rule", object{
		"EventBusName": ref("Bus"), "State": "ENABLED",
		"EventPattern": object{"source": texts("gen.orders"), "detail": object{"total": list{object{"numeric": list{">", 100}}}}},
		"Targets":      list{object{"Id": "machine", "Arn": ref("Machine"), "RoleArn": att("RuleRole", "Arn"), "RetryPolicy": object{"MaximumRetryAttempts": 2}}},
	})
	s.add("Failures", "AWS::CloudWatch::Alarm", object{
		"Namespace": "AWS/States", "MetricName": "ExecutionsFailed", "Statistic": "Sum", "Period": 300, "EvaluationPeriods": 2, "Threshold": 0,
		"ComparisonOperator": "GreaterThanThreshold", "Dimensions": list{object{"Name": "StateMachineArn", "Value": ref("Machine")}},
	})
	s.output("Machine", att("Machine", "Name"))
}

func signIn(a *app) {
	s := a.stack("SignIn")
	s.add("Pool", "AWS::Cognito::UserPool", object{
		"AutoVerifiedAttributes": texts("email"), "UsernameAttributes": texts("email"),
		"Policies": object{"PasswordPolicy": object{"MinimumLength": 12, "RequireNumbers": true, "RequireSymbols": false}},
		"Schema":   list{object{"Name": "email", "Required": true, "Mutable": true}},
	}, deletionPolicy("Delete"))
	for _, id := range []string{"WebClient", "AppClient"} {
		s.add(id, "AWS::Cognito::UserPoolClient", object{"UserPoolId": ref("Pool"), "GenerateSecret": id == "AppClient",
			"ExplicitAuthFlows": texts("ALLOW_USER_SRP_AUTH", "ALLOW_REFRESH_TOKEN_AUTH")})
	}
	s.add("Admins", "AWS::Cognito::UserPoolGroup", object{"UserPoolId": ref("Pool"), "GroupName": "admins", "Precedence": 1})
	s.parameterOf("Issuer", sub("https://${Pool.ProviderName}"))
	s.output("Clients", join(",", ref("WebClient"), ref("AppClient")))
}

func containers(a *app) {
	s := a.stack("Containers")
	s.add("Cluster", "AWS::ECS::Cluster", object{"ClusterSettings": list{object{"Name": "containerInsights", "Value": "enabled"}}})
	s.add("Repository", "AWS::ECR::Repository", object{"ImageScanningConfiguration": object{"ScanOnPush": true}, "EmptyOnDelete": true}, deletionPolicy("Delete"))
	s.role("ExecutionRole", "ecs-tasks.amazonaws.com", "service-role/AmazonECSTaskExecutionRolePolicy")
	s.role("TaskRole", "ecs-tasks.amazonaws.com")
	s.logGroup("Logs", 14)
	s.add("Secret", "AWS::SecretsManager::Secret", object{"GenerateSecretString": object{"SecretStringTemplate": `{"user":"app"}`, "GenerateStringKey": "password"}}, deletionPolicy("Delete"))
	s.add("Task", "AWS::ECS::TaskDefinition", object{
		"Family": "gen-containers", "Cpu": "256", "Memory": "512", "NetworkMode": "awsvpc", "RequiresCompatibilities": texts("FARGATE"),
		"ExecutionRoleArn": att("ExecutionRole", "Arn"), "TaskRoleArn": att("TaskRole", "Arn"),
		"RuntimePlatform": object{"CpuArchitecture": "ARM64", "OperatingSystemFamily": "LINUX"},
		"ContainerDefinitions": list{object{
			"Name": "web", "Essential": true, "Image": join(":", att("Repository", "RepositoryUri"), "latest"),
			"PortMappings":     list{object{"ContainerPort": 8080, "Protocol": "tcp"}},
			"Environment":      list{object{"Name": "REGION", "Value": ref("AWS::Region")}, object{"Name": "CLUSTER", "Value": ref("Cluster")}},
			"Secrets":          list{object{"Name": "PASSWORD", "ValueFrom": join("", ref("Secret"), ":password::")}},
			"LogConfiguration": object{"LogDriver": "awslogs", "Options": object{"awslogs-group": ref("Logs"), "awslogs-region": ref("AWS::Region"), "awslogs-stream-prefix": "web"}},
		}},
	})
	s.output("Task", ref("Task"))
}
