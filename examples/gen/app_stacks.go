package gen

import "fmt"

func twoStacks(a *app) {
	data := a.stack("TwoData")
	data.table("Table", "id", nil)
	data.bucket("Bucket", nil)
	name := data.export("ExportsOutputRefTable", ref("Table"))
	arn := data.export("ExportsOutputFnGetAttTableArn", att("Table", "Arn"))

	web := a.stack("TwoWeb")
	web.role("Role", "lambda.amazonaws.com", lambdaBasics)
	web.policy("Access", "Role", allow(texts("dynamodb:GetItem"), list{arn(web), join("", arn(web), "/index/*")}))
	env := object{"TABLE": name(web)}
	if a.since(2) {
		bucket := data.export("ExportsOutputRefBucket", ref("Bucket"))
		env["BUCKET"] = bucket(web)
	}
	web.function("Function", "Role", object{"Environment": object{"Variables": env}}, dependsOn("Access"))
}

func stackChain(a *app) {
	var before func(*stack) object
	for i := 1; i <= 4; i++ {
		s := a.stack(fmt.Sprintf("Link%d", i))
		value := any("start")
		if before != nil {
			value = join("", before(s), ">")
		}
		s.parameterOf("Value", value)
		s.queue("Queue", nil)
		before = s.export("ExportsOutputValue", att("Value", "Value"))
	}
}

func stackDiamond(a *app) {
	base := a.stack("DiamondBase")
	base.topic("Topic", nil)
	topic := base.export("ExportsOutputRefTopic", ref("Topic"))
	top := a.stack("AnyTop") // before the others by name, after them by need
	var urls list
	for _, side := range []string{"Left", "Right"} {
		s := a.stack("Diamond" + side)
		s.queue("Queue", nil)
		s.add("Subscription", "AWS::SNS::Subscription", object{"TopicArn": topic(s), "Protocol": "sqs", "Endpoint": att("Queue", "Arn"), "RawMessageDelivery": true})
		url := s.export("ExportsOutputRefQueue", ref("Queue"))
		urls = append(urls, url(top))
	}
	top.parameterOf("Queues", join(" ", urls...))
}

func stages(a *app) {
	for _, name := range []string{"Beta", "Prod"} {
		st := a.stage(name)
		data := st.stack(name + "DataA1B2C3D4")
		data.path, data.name = name+"/Data", name+"-Data"
		data.queue("Queue", nil)
		url := data.export("ExportsOutputRefQueue", ref("Queue"))
		web := st.stack(name + "WebE5F6A7B8")
		web.path, web.name = name+"/Web", name+"-Web"
		web.role("Role", "lambda.amazonaws.com", lambdaBasics)
		bucket, key := web.directory("Code", map[string]string{"index.js": "exports.handler = async () => process.env.QUEUE;\n"})
		web.function("Function", "Role", object{
			"Code":        object{"S3Bucket": bucket, "S3Key": key},
			"Environment": object{"Variables": object{"QUEUE": url(web)}},
		})
	}
}

func regions(a *app) {
	for _, region := range []string{"eu-west-1", "us-east-1"} {
		s := a.stack("Regional-" + region)
		s.name, s.region = "Regional", region
		s.topic("Topic", nil)
		s.parameterOf("Where", join(" ", ref("AWS::Region"), pick(0, zones("")), ref("Topic")))
	}
}
