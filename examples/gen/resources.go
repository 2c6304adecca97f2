package gen

import "fmt"

// This file makes the resources that many assemblies use. Each function adds one resource, with the
// properties a reviewer would expect, and returns its logical id.

// parameterOf adds an SSM parameter: the cheapest resource there is, with a value that can hold any reference.
func (s *stack) parameterOf(id string, value any, opts ...option) string {
	return s.add(id, "AWS::SSM::Parameter", object{"Type": "String", "Value": value}, opts...)
}

func (s *stack) queue(id string, properties object, opts ...option) string {
	return s.add(id, "AWS::SQS::Queue", properties, opts...)
}

func (s *stack) topic(id string, properties object, opts ...option) string {
	return s.add(id, "AWS::SNS::Topic", properties, opts...)
}

func (s *stack) logGroup(id string, days int, opts ...option) string {
	return s.add(id, "AWS::Logs::LogGroup", object{"RetentionInDays": days}, append([]option{deletionPolicy("Delete")}, opts...)...)
}

func (s *stack) bucket(id string, properties object, opts ...option) string {
	p := object{
		"BucketEncryption":               object{"ServerSideEncryptionConfiguration": list{object{"ServerSideEncryptionByDefault": object{"SSEAlgorithm": "AES256"}}}},
		"PublicAccessBlockConfiguration": object{"BlockPublicAcls": true, "BlockPublicPolicy": true, "IgnorePublicAcls": true, "RestrictPublicBuckets": true},
	}
	for k, v := range properties {
		p[k] = v
	}
	return s.add(id, "AWS::S3::Bucket", p, append([]option{deletionPolicy("Delete")}, opts...)...)
}

// table adds a table with one string key.
func (s *stack) table(id, key string, properties object, opts ...option) string {
	p := object{
		"AttributeDefinitions": list{object{"AttributeName": key, "AttributeType": "S"}},
		"KeySchema":            list{object{"AttributeName": key, "KeyType": "HASH"}},
		"BillingMode":          "PAY_PER_REQUEST",
	}
	for k, v := range properties {
		p[k] = v
	}
	return s.add(id, "AWS::DynamoDB::Table", p, append([]option{deletionPolicy("Delete")}, opts...)...)
}

// trust is the trust policy of a role that a service assumes.
func trust(service any) object {
	return object{"Version": "2012-10-17", "Statement": list{
		object{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": object{"Service": service}},
	}}
}

// allow is a policy document of one statement.
func allow(actions list, resources any) object {
	return object{"Version": "2012-10-17", "Statement": list{
		object{"Effect": "Allow", "Action": actions, "Resource": resources},
	}}
}

func (s *stack) role(id, service string, managed ...string) string {
	p := object{"AssumeRolePolicyDocument": trust(service)}
	var arns list
	for _, m := range managed {
		arns = append(arns, join("", "arn:", ref("AWS::Partition"), ":iam::aws:policy/", m))
	}
	if len(arns) > 0 {
		p["ManagedPolicyArns"] = arns
	}
	return s.add(id, "AWS::IAM::Role", p)
}

const lambdaBasics = "service-role/AWSLambdaBasicExecutionRole"

// policy adds an inline policy of a role: a type that Cloud Control can't provision.
func (s *stack) policy(id, role string, document object) string {
	return s.add(id, "AWS::IAM::Policy", object{"PolicyName": id, "PolicyDocument": document, "Roles": list{ref(role)}})
}

// function adds a Lambda function of one inline file.
func (s *stack) function(id, role string, properties object, opts ...option) string {
	p := object{
		"Code":    object{"ZipFile": "exports.handler = async () => 'ok';"},
		"Handler": "index.handler",
		"Runtime": "nodejs22.x",
		"Role":    att(role, "Arn"),
	}
	for k, v := range properties {
		p[k] = v
	}
	return s.add(id, "AWS::Lambda::Function", p, opts...)
}

// permission lets a service invoke a function.
func (s *stack) permission(id, function, service string, source any) string {
	return s.add(id, "AWS::Lambda::Permission", object{
		"Action": "lambda:InvokeFunction", "FunctionName": att(function, "Arn"), "Principal": service, "SourceArn": source,
	})
}

// services fills a stack with n resources of small services; see Stack200.
func services(s *stack, n int) {
	left := n
	next := func(add func()) {
		if left > 0 {
			add()
			left--
		}
	}
	for i := 1; left > 0; i++ {
		id := func(kind string) string { return fmt.Sprintf("Service%02d%s", i, kind) }
		next(func() { s.role(id("Role"), "lambda.amazonaws.com", lambdaBasics) })
		next(func() { s.logGroup(id("Logs"), 14) })
		next(func() { s.table(id("Table"), "id", nil) })
		next(func() { s.queue(id("Failed"), object{"MessageRetentionPeriod": 1209600}) })
		next(func() {
			s.queue(id("Inbox"), object{"VisibilityTimeout": 90, "RedrivePolicy": object{"deadLetterTargetArn": att(id("Failed"), "Arn"), "maxReceiveCount": 3}})
		})
		next(func() {
			s.policy(id("Access"), id("Role"), object{"Version": "2012-10-17", "Statement": list{
				object{"Effect": "Allow", "Action": texts("dynamodb:GetItem", "dynamodb:PutItem"), "Resource": att(id("Table"), "Arn")},
				object{"Effect": "Allow", "Action": texts("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"), "Resource": att(id("Inbox"), "Arn")},
			}})
		})
		next(func() {
			s.function(id("Worker"), id("Role"), object{
				"Timeout": 30, "MemorySize": 256, "LoggingConfig": object{"LogGroup": ref(id("Logs"))},
				"Environment": object{"Variables": object{"TABLE": ref(id("Table")), "NEXT": s.neighbour(i)}},
			}, dependsOn(id("Access")))
		})
		next(func() {
			s.add(id("Mapping"), "AWS::Lambda::EventSourceMapping", object{"EventSourceArn": att(id("Inbox"), "Arn"), "FunctionName": ref(id("Worker")), "BatchSize": 10})
		})
		next(func() {
			s.add(id("Nightly"), "AWS::Events::Rule", object{"ScheduleExpression": "cron(0 3 * * ? *)", "State": "ENABLED",
				"Targets": list{object{"Id": "Inbox", "Arn": att(id("Inbox"), "Arn")}}})
		})
		next(func() {
			s.add(id("Alarm"), "AWS::CloudWatch::Alarm", object{
				"Namespace": "AWS/SQS", "MetricName": "ApproximateNumberOfMessagesVisible", "Statistic": "Maximum", "Period": 300, "EvaluationPeriods": 1,
				"Threshold": 1, "ComparisonOperator": "GreaterThanOrEqualToThreshold", "TreatMissingData": "notBreaching",
				"Dimensions": list{object{"Name": "QueueName", "Value": att(id("Failed"), "QueueName")}},
			})
		})
	}
}

// neighbour is the queue of the service before, which service i sends to: every fifth service starts anew, so
// that chains of five services arise.
func (s *stack) neighbour(i int) any {
	if i%5 == 1 {
		return "none"
	}
	return ref(fmt.Sprintf("Service%02dInbox", i-1))
}
