package gen

func parameters(a *app) {
	s := a.stack("Parameters")
	text, number := "hello", 42
	if a.since(2) {
		text, number = "good day", 43
	}
	s.parameter("Text", object{"Type": "String", "Default": text, "MinLength": 1, "MaxLength": 20, "AllowedPattern": "[a-z ]*"})
	s.parameter("Empty", object{"Type": "String", "Default": ""})
	s.parameter("Number", object{"Type": "Number", "Default": number, "MinValue": 1, "MaxValue": 100})
	s.parameter("NumberAsText", object{"Type": "Number", "Default": "2.5"})
	s.parameter("Numbers", object{"Type": "List<Number>", "Default": "80,443"})
	s.parameter("Texts", object{"Type": "CommaDelimitedList", "Default": "red, green,blue"})
	s.parameter("Choice", object{"Type": "String", "Default": "b", "AllowedValues": texts("a", "b")})
	s.parameter("Secret", object{"Type": "String", "Default": "changeit", "NoEcho": true})
	s.parameter("Zone", object{"Type": "AWS::EC2::AvailabilityZone::Name", "Default": "eu-west-1a"})
	s.parameter("Image", object{"Type": "AWS::EC2::Image::Id", "Default": "ami-0123456789abcdef0"})
	s.parameter("Groups", object{"Type": "List<AWS::EC2::SecurityGroup::Id>", "Default": "sg-0123456789abcdef0,sg-0fedcba9876543210"})
	// Of no use to a resource, as CDK writes it: its value is never looked up.
	s.parameter("BootstrapVersion", object{"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/cdk-bootstrap/hnb659fds/version"})

	s.parameterOf("FromText", ref("Text"))
	s.parameterOf("FromEmpty", join("", "<", ref("Empty"), ">"))
	s.queue("FromNumber", object{"VisibilityTimeout": ref("Number"), "Tags": tags("choice", ref("Choice"), "half", ref("NumberAsText"))})
	s.parameterOf("FromNumbers", object{"Fn::Join": list{",", ref("Numbers")}})
	s.parameterOf("FromTexts", pick(2, ref("Texts")))
	s.add("FromList", "AWS::SSM::Parameter", object{"Type": "StringList", "Value": object{"Fn::Join": list{",", ref("Texts")}}})
	s.parameterOf("FromZone", sub("${Zone} ${Image}"))
	s.parameterOf("FromGroups", object{"Fn::Join": list{" ", ref("Groups")}})
	s.add("FromSecret", "AWS::SecretsManager::Secret", object{"Description": "from a parameter", "SecretString": ref("Secret")}, deletionPolicy("Delete"))
}

func explicitOrder(a *app) {
	s := a.stack("DependsOn")
	s.queue("First", nil)
	s.queue("Second", nil, dependsOn("First"))
	s.topic("Third", nil, dependsOn("Second", "First"))
	s.parameterOf("Fourth", ref("First"), dependsOn("Third"))
	s.parameterOf("Fifth", "x", dependsOn("Fourth", "Third", "Second"))
	s.logGroup("Apart", 1)
}

func deletionPolicies(a *app) {
	s := a.stack("DeletionPolicies")
	s.queue("Plain", nil)
	s.queue("Explicit", nil, deletionPolicy("Delete"))
	if a.version == 1 {
		s.bucket("Bucket", nil)
		s.table("Table", "id", nil)
		s.parameterOf("User", ref("Table"))
	}
}

func retained(a *app) {
	s := a.stack("Retained")
	s.queue("Gone", nil)
	s.queue("Kept", object{"Tags": tags("with", ref("Gone"))}, deletionPolicy("Retain"))
	s.topic("KeptOnceCreated", nil, deletionPolicy("RetainExceptOnCreate"))
	s.parameterOf("GoneToo", ref("Kept"))
}

func tagged(a *app) {
	s := a.stack("Tags")
	s.tags = map[string]string{"app": "gen", "cost-center": "42"}
	colour := "blue"
	if a.since(2) {
		colour = "green"
		s.tags = map[string]string{"app": "gen", "owner": "team"}
	}
	s.queue("Queue", object{"Tags": tags("colour", colour, "region", ref("AWS::Region"))})
	s.topic("Topic", object{"Tags": tags("colour", colour, "queue", att("Queue", "QueueName"))})
	// Here tags are a map.
	s.add("Parameter", "AWS::SSM::Parameter", object{"Type": "String", "Value": "x", "Tags": object{"colour": colour, "topic": att("Topic", "TopicName")}})
	s.bucket("Bucket", object{"Tags": tags("colour", colour, "purpose", "to hold = anything: + - @ _ . /")})
	s.role("Role", "lambda.amazonaws.com")
	s.function("Function", "Role", object{"Tags": tags("colour", colour)})
}

func unicode(a *app) {
	s := a.stack("Unicode")
	s.template["Description"] = "Grüße, 世界, мир, עולם, 🌍"
	greeting := "Grüß Gott — ‘你好’ \"こんにちは\" <&> \\ 🙂"
	if a.since(2) {
		greeting = "Ciao — ‘再见’ \"さようなら\" <&> \\ 👋"
	}
	s.parameterOf("Greeting", greeting)
	s.parameterOf("Composed", join(" é e\u0301 ", "Å", att("Greeting", "Value")))
	s.topic("Topic", object{"Tags": tags("città", "Zürich")})
	s.parameterOf("Lines", "first\nsecond\ttabbed\n")
	s.metadata = object{"/Unicode/Topic": list{object{"type": "aws:cdk:info", "data": "señal ✓"}}}
	s.output("Greeting", att("Greeting", "Value"))
}

func deepProperties(a *app) {
	s := a.stack("DeepProperties")
	days := 30
	if a.since(2) {
		days = 60
	}
	s.bucket("Bucket", object{
		"VersioningConfiguration": object{"Status": "Enabled"},
		"LifecycleConfiguration": object{"Rules": list{
			object{
				"Id": "archive", "Status": "Enabled", "Prefix": "logs/",
				"Transitions":                  list{object{"StorageClass": "STANDARD_IA", "TransitionInDays": days}, object{"StorageClass": "GLACIER", "TransitionInDays": 90}},
				"NoncurrentVersionTransitions": list{object{"StorageClass": "GLACIER", "TransitionInDays": 30}},
				"ExpirationInDays":             365,
			},
			object{"Id": "abort", "Status": "Enabled", "AbortIncompleteMultipartUpload": object{"DaysAfterInitiation": 7}},
		}},
		"CorsConfiguration": object{"CorsRules": list{object{"AllowedMethods": texts("GET", "PUT"), "AllowedOrigins": texts("https://example.com"), "AllowedHeaders": texts("*"), "MaxAge": 3000}}},
	})
	s.role("Role", "states.amazonaws.com")
	s.queue("Queue", nil)
	s.add("Machine", "AWS::StepFunctions::StateMachine", object{
		"RoleArn": att("Role", "Arn"),
		"Definition": object{"StartAt": "Each", "States": object{"Each": object{
			"Type": "Map", "ItemsPath": "$.items", "End": true,
			"ItemProcessor": object{"StartAt": "Send", "States": object{"Send": object{
				"Type": "Task", "Resource": join("", "arn:", ref("AWS::Partition"), ":states:::sqs:sendMessage"), "End": true,
				"Parameters": object{"QueueUrl": ref("Queue"), "MessageBody.$": "$"},
				"Retry":      list{object{"ErrorEquals": texts("States.ALL"), "IntervalSeconds": 2, "MaxAttempts": 3, "BackoffRate": 2}},
			}}},
		}}},
	})
	s.add("Dashboard", "AWS::CloudWatch::Dashboard", object{"DashboardBody": sub(`{"widgets":[{"type":"metric","x":0,"y":0,"width":12,"height":6,"properties":{"region":"${AWS::Region}","metrics":[["AWS/SQS","NumberOfMessagesSent","QueueName","${Queue.QueueName}"]],"title":"sent"}}]}`)})
}

func outputs(a *app) {
	s := a.stack("Outputs")
	s.queue("Queue", nil)
	s.output("Text", "plain")
	s.output("Number", 30)
	s.output("Name", ref("Queue"))
	s.section("Outputs")["Described"] = object{"Value": att("Queue", "Arn"), "Description": "the queue"}
	s.section("Outputs")["Exported"] = object{"Value": att("Queue", "Arn"), "Export": object{"Name": sub("${AWS::StackName}-queue")}}
	if a.since(2) {
		s.output("Text", "another")
		s.output("Added", join(":", ref("AWS::StackName"), att("Queue", "QueueName")))
		delete(s.section("Outputs"), "Number")
	}
}

func fixedNames(a *app) {
	s := a.stack("FixedNames")
	suffix := "one"
	if a.since(2) {
		suffix = "two"
	}
	s.queue("Queue", object{"QueueName": "gen-fixed-" + suffix})
	s.topic("Topic", object{"TopicName": "gen-fixed-" + suffix})
	s.table("Table", "id", object{"TableName": "gen-fixed-" + suffix})
	s.add("Parameter", "AWS::SSM::Parameter", object{"Name": "/gen/fixed/" + suffix, "Type": "String", "Value": join(" ", ref("Queue"), ref("Topic"), ref("Table"))})
	s.add("Role", "AWS::IAM::Role", object{"RoleName": "gen-fixed-" + suffix, "AssumeRolePolicyDocument": trust("lambda.amazonaws.com")})
	s.function("Function", "Role", object{"FunctionName": "gen-fixed-" + suffix, "Environment": object{"Variables": object{"TABLE": ref("Table")}}})
	s.add("Logs", "AWS::Logs::LogGroup", object{"LogGroupName": join("", "/aws/lambda/", ref("Function")), "RetentionInDays": 3}, deletionPolicy("Delete"))
}
