package gen

import "fmt"

func joinSplitSelect(a *app) {
	s := a.stack("JoinSplitSelect")
	s.parameter("Hosts", object{"Type": "CommaDelimitedList", "Default": "a.example.com, b.example.com,c.example.com"})
	s.parameter("Index", object{"Type": "Number", "Default": 1})
	s.queue("Queue", nil)
	s.parameterOf("Joined", join(";", ref("AWS::Region"), "x", join("-", "inner", att("Queue", "QueueName"))))
	s.parameterOf("Hosts1", pick(ref("Index"), ref("Hosts")))
	s.parameterOf("AllHosts", object{"Fn::Join": list{" ", ref("Hosts")}})
	s.parameterOf("ArnService", pick(2, split(":", att("Queue", "Arn"))))
	s.parameterOf("ArnName", pick("5", split(":", att("Queue", "Arn"))))
	s.parameterOf("Account", pick(4, split(":", att("Queue", "Arn"))))
	s.parameterOf("Rejoined", object{"Fn::Join": list{"|", split(":", "one:two:three")}})
	s.parameterOf("Literal", pick(0, texts("first", "second")))
	s.output("Rejoined", att("Rejoined", "Value"))
}

func substitute(a *app) {
	s := a.stack("Substitute")
	s.parameter("Stage", object{"Type": "String", "Default": "test"})
	s.bucket("Bucket", nil)
	s.topic("Topic", nil)
	s.parameterOf("Plain", sub("nothing to replace"))
	s.parameterOf("Parameter", sub("stage ${Stage} in ${AWS::Region}"))
	s.parameterOf("Resource", sub("${Bucket} and ${Topic}"))
	s.parameterOf("Attribute", sub("${Bucket.Arn}/* at ${Bucket.RegionalDomainName}"))
	s.parameterOf("Literal", sub("${!Stage} stays, $Stage and ${!AWS::Region} too"))
	s.parameterOf("Adjacent", sub("${Stage}${Stage}${Bucket.DomainName}"))
	values := object{"Name": att("Topic", "TopicName"), "Stage": "mine", "Number": 7}
	text := "${Name}, ${Stage} not the parameter, ${Number}, ${AWS::AccountId}"
	if a.since(2) {
		values["More"] = join("", "more of ", ref("Bucket"))
		text += ", ${More}"
	}
	s.parameterOf("Mapped", subWith(text, values))
	s.parameterOf("Nested", subWith("${List}", object{"List": join(",", sub("${Stage}-a"), sub("${Stage}-b"))}))
	s.output("Link", sub("https://console.${AWS::URLSuffix}/s3/buckets/${Bucket}?region=${AWS::Region}"))
}

func pseudoParameters(a *app) {
	s := a.stack("PseudoParameters")
	for _, name := range []string{"AccountId", "Region", "Partition", "URLSuffix", "StackName", "StackId"} {
		s.parameterOf("The"+name, ref("AWS::"+name))
		s.output("The"+name, sub("${AWS::"+name+"}"))
	}
	s.parameterOf("Policy", join("", "arn:", ref("AWS::Partition"), ":iam::", ref("AWS::AccountId"), ":root"))
	s.condition("HasNoTopics", equals(object{"Fn::Join": list{"", ref("AWS::NotificationARNs")}}, ""), true)
	s.parameterOf("Topics", choose("HasNoTopics", "none", "some"), onlyIf("HasNoTopics"))
}

func nestedAttributes(a *app) {
	s := a.stack("NestedAttributes")
	base := s.subnets("10.40.0.0/16", 2)
	s.add("Subnets", "AWS::RDS::DBSubnetGroup", object{"DBSubnetGroupDescription": "of the database", "SubnetIds": base})
	s.add("Database", "AWS::RDS::DBInstance", object{
		"Engine": "postgres", "DBInstanceClass": "db.t4g.micro", "AllocatedStorage": "20", "DBSubnetGroupName": ref("Subnets"),
		"MasterUsername": "app", "ManageMasterUserPassword": true, "StorageEncrypted": true,
	}, deletionPolicy("Delete"))
	s.table("Table", "id", object{"StreamSpecification": object{"StreamViewType": "NEW_IMAGE"}})
	s.parameterOf("Address", att("Database", "Endpoint.Address"))
	s.parameterOf("Port", sub("${Database.Endpoint.Port}"))
	s.parameterOf("Secret", object{"Fn::GetAtt": list{"Database", "MasterUserSecret.SecretArn"}})
	s.parameterOf("Stream", att("Table", "StreamArn"))
	s.output("Url", subWith("postgres://${Host}:${Port}", object{"Host": att("Database", "Endpoint.Address"), "Port": att("Database", "Endpoint.Port")}))
}

func conditions(a *app) {
	s := a.stack("Conditions")
	stage, prod := "test", false
	if a.since(2) {
		stage, prod = "prod", true
	}
	s.parameter("Stage", object{"Type": "String", "Default": stage, "AllowedValues": texts("test", "prod")})
	s.condition("IsProd", equals(ref("Stage"), "prod"), prod)
	s.condition("IsTest", object{"Fn::Not": list{object{"Condition": "IsProd"}}}, !prod)
	s.condition("InEurope", object{"Fn::Or": list{equals(ref("AWS::Region"), "eu-west-1"), equals(ref("AWS::Region"), "eu-central-1")}}, true)
	s.condition("ProdInEurope", object{"Fn::And": list{object{"Condition": "IsProd"}, object{"Condition": "InEurope"}}}, prod)
	s.condition("Never", equals("a", "b"), false)

	s.queue("Always", object{"VisibilityTimeout": choose("IsProd", 120, 30), "DelaySeconds": choose("InEurope", 5, 10)})
	s.queue("ProdOnly", object{"MessageRetentionPeriod": 1209600}, onlyIf("IsProd"))
	s.queue("TestOnly", object{"MessageRetentionPeriod": 60}, onlyIf("IsTest"))
	s.topic("Both", nil, onlyIf("ProdInEurope"))
	s.parameterOf("NeverThere", ref("AlsoNever"), onlyIf("Never"))
	s.parameterOf("AlsoNever", "x", onlyIf("Never"))
	s.parameterOf("Chosen", choose("IsProd", ref("ProdOnly"), ref("TestOnly")))
	s.parameterOf("Deeply", choose("IsProd", "prod", choose("InEurope", join("-", "test", "europe"), "test")))
	s.section("Outputs")["ProdQueue"] = object{"Value": ref("ProdOnly"), "Condition": "IsProd"}
	s.output("Chosen", choose("ProdInEurope", "both", "not both"))
}

func withNoValue(a *app) {
	s := a.stack("NoValue")
	s.condition("Off", equals(ref("AWS::Region"), "nowhere"), false)
	s.queue("Queue", object{"DelaySeconds": noValue(), "VisibilityTimeout": choose("Off", 45, noValue())})
	s.topic("Topic", object{"Tags": list{
		object{"Key": "kept", "Value": "1"}, choose("Off", object{"Key": "dropped", "Value": "2"}, noValue()),
	}})
	s.role("Role", "lambda.amazonaws.com")
	s.function("Function", "Role", object{
		"Environment":      choose("Off", object{"Variables": object{"A": "1"}}, noValue()),
		"DeadLetterConfig": choose("Off", noValue(), object{"TargetArn": att("Queue", "Arn")}),
		"TracingConfig":    object{"Mode": "Active"},
	})
	s.output("Present", ref("Queue"))
}

func mappings(a *app) {
	s := a.stack("Mappings")
	stage := "test"
	if a.since(2) {
		stage = "prod"
	}
	s.parameter("Stage", object{"Type": "String", "Default": stage})
	s.mapping("ByRegion", object{
		"eu-west-1":    object{"Zone": "Ireland", "Peers": texts("eu-west-2", "eu-central-1")},
		"eu-central-1": object{"Zone": "Frankfurt", "Peers": texts("eu-west-1")},
		"us-east-1":    object{"Zone": "Virginia", "Peers": texts("us-east-2", "us-west-2")},
		"us-west-2":    object{"Zone": "Oregon", "Peers": texts("us-east-1")},
	})
	s.mapping("ByStage", object{"test": object{"Timeout": 30, "Queue": "small"}, "prod": object{"Timeout": 300, "Queue": "large"}})
	s.queue("Queue", object{"VisibilityTimeout": findInMap("ByStage", ref("Stage"), "Timeout")})
	s.parameterOf("Zone", findInMap("ByRegion", ref("AWS::Region"), "Zone"))
	s.parameterOf("Peer", pick(0, findInMap("ByRegion", ref("AWS::Region"), "Peers")))
	s.parameterOf("Peers", object{"Fn::Join": list{",", findInMap("ByRegion", "us-east-1", "Peers")}})
	s.parameterOf("Size", subWith("a ${Size} queue", object{"Size": findInMap("ByStage", ref("Stage"), "Queue")}))
}

func base64Cidr(a *app) {
	s := a.stack("Base64Cidr")
	s.add("Network", "AWS::EC2::VPC", object{"CidrBlock": "10.50.0.0/16", "EnableDnsHostnames": true, "EnableDnsSupport": true})
	for i := range 4 {
		s.add(fmt.Sprintf("Subnet%d", i), "AWS::EC2::Subnet", object{
			"VpcId":            ref("Network"),
			"CidrBlock":        pick(i, cidr(att("Network", "CidrBlock"), 4, 8)),
			"AvailabilityZone": pick(i%2, zones("")),
		})
	}
	s.add("Template", "AWS::EC2::LaunchTemplate", object{"LaunchTemplateData": object{
		"InstanceType": "t4g.micro",
		"UserData":     base64(sub("#!/bin/sh\necho ${Network} in ${AWS::Region} > /etc/motd\n")),
	}})
	s.parameterOf("Encoded", base64("plain text"))
	s.parameterOf("Zones", object{"Fn::Join": list{",", zones(ref("AWS::Region"))}})
	s.output("FirstBlock", pick("0", cidr("192.168.0.0/24", 6, 5)))
}
