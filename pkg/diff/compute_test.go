package diff

import (
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/state"
)

func TestVerdicts(t *testing.T) {
	const (
		role = `"Role":{"Type":"AWS::IAM::Role","Properties":{"AssumeRolePolicyDocument":{"Version":"2012-10-17"}%s}}`
		fn   = `"Fn":{"Type":"AWS::Lambda::Function","Properties":{"Role":{"Fn::GetAtt":["Role","Arn"]},"Code":{"ZipFile":"x"}%s}}`
	)
	with := func(template, more string) string { return strings.Replace(template, "%s", more, 1) }
	for _, tt := range []struct {
		name, from, to, want string
	}{
		{"nothing changes", `{` + with(role, "") + `}`, `{` + with(role, "") + `}`, ""},
		{"a new resource", `{}`, `{` + with(role, "") + `}`, "create Role"},
		{"a removed resource", `{` + with(role, "") + `}`, `{}`, "delete Role"},
		{"an update in place",
			`{"Q":{"Type":"AWS::SQS::Queue","Properties":{"DelaySeconds":1}}}`,
			`{"Q":{"Type":"AWS::SQS::Queue","Properties":{"DelaySeconds":2}}}`,
			"update Q DelaySeconds"},
		{"a property removed is a change",
			`{"Q":{"Type":"AWS::SQS::Queue","Properties":{"DelaySeconds":1}}}`,
			`{"Q":{"Type":"AWS::SQS::Queue"}}`,
			"update Q DelaySeconds"},
		{"a property that is AWS::NoValue is absent",
			`{"Q":{"Type":"AWS::SQS::Queue"}}`,
			`{"Q":{"Type":"AWS::SQS::Queue","Properties":{"DelaySeconds":{"Ref":"AWS::NoValue"}}}}`,
			""},
		{"a nested key removed is a change",
			`{"F":{"Type":"AWS::Lambda::Function","Properties":{"Environment":{"Variables":{"A":"1","B":"2"}}}}}`,
			`{"F":{"Type":"AWS::Lambda::Function","Properties":{"Environment":{"Variables":{"A":"1"}}}}}`,
			"update F Environment.Variables.B"},
		{"a create-only property replaces",
			`{"Q":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":"a"}}}`,
			`{"Q":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":"b"}}}`,
			"replace Q QueueName!always"},
		{"a create-only property that appears replaces",
			`{"Q":{"Type":"AWS::SQS::Queue"}}`,
			`{"Q":{"Type":"AWS::SQS::Queue","Properties":{"FifoQueue":true}}}`,
			"replace Q FifoQueue!always"},
		{"a nested create-only path replaces",
			`{"B":{"Type":"AWS::Budgets::Budget","Properties":{"Budget":{"BudgetName":"a","BudgetType":"COST"}}}}`,
			`{"B":{"Type":"AWS::Budgets::Budget","Properties":{"Budget":{"BudgetName":"b","BudgetType":"COST"}}}}`,
			"replace B Budget.BudgetName!always"},
		{"its neighbours do not",
			`{"B":{"Type":"AWS::Budgets::Budget","Properties":{"Budget":{"BudgetName":"a","BudgetType":"COST"}}}}`,
			`{"B":{"Type":"AWS::Budgets::Budget","Properties":{"Budget":{"BudgetName":"a","BudgetType":"USAGE"}}}}`,
			"update B Budget.BudgetType"},
		{"an object removed with a create-only member replaces",
			`{"B":{"Type":"AWS::Budgets::Budget","Properties":{"Budget":{"BudgetName":"a"}}}}`,
			`{"B":{"Type":"AWS::Budgets::Budget","Properties":{}}}`,
			"replace B Budget!always"},
		{"another type replaces",
			`{"X":{"Type":"AWS::SQS::Queue"}}`,
			`{"X":{"Type":"AWS::SNS::Topic"}}`,
			"replace X Type!always"},
		{"a type without updates is replaced by any change",
			`{"L":{"Type":"AWS::Lambda::Permission","Properties":{"Action":"a","FunctionName":"f","Principal":"p","NewProperty":1}}}`,
			`{"L":{"Type":"AWS::Lambda::Permission","Properties":{"Action":"a","FunctionName":"f","Principal":"p","NewProperty":2}}}`,
			"replace L NewProperty!always"},
		{"an unknown type is updated",
			`{"X":{"Type":"Acme::Thing::One","Properties":{"A":1}}}`,
			`{"X":{"Type":"Acme::Thing::One","Properties":{"A":2}}}`,
			"update X A"},
		{"a custom resource ignores its timestamp",
			`{"C":{"Type":"Custom::X","Properties":{"ServiceToken":"t","Timestamp":"1"}}}`,
			`{"C":{"Type":"Custom::X","Properties":{"ServiceToken":"t","Timestamp":"2"}}}`,
			""},
		{"other types do not",
			`{"X":{"Type":"Acme::Thing::One","Properties":{"Timestamp":1}}}`,
			`{"X":{"Type":"Acme::Thing::One","Properties":{"Timestamp":2}}}`,
			"update X Timestamp"},
		{"the CDK's metadata is skipped",
			`{}`,
			`{"CDKMetadata":{"Type":"AWS::CDK::Metadata","Properties":{"Analytics":"v2"}}}`,
			""},
		{"a policy alone touches the record only",
			`{` + with(role, "") + `}`,
			`{"Role":{"Type":"AWS::IAM::Role","DeletionPolicy":"Retain","Properties":{"AssumeRolePolicyDocument":{"Version":"2012-10-17"}}}}`,
			"none Role [record]"},
		{"stating Delete is stating nothing",
			`{"Q":{"Type":"AWS::SQS::Queue"}}`,
			`{"Q":{"Type":"AWS::SQS::Queue","DeletionPolicy":"Delete","UpdateReplacePolicy":"Delete"}}`,
			""},
		{"but a database is kept as a snapshot by default",
			`{"D":{"Type":"AWS::RDS::DBInstance"}}`,
			`{"D":{"Type":"AWS::RDS::DBInstance","DeletionPolicy":"Delete"}}`,
			"none D [record]"},
		{"a new DependsOn touches the record only",
			`{"A":{"Type":"AWS::SQS::Queue"},"B":{"Type":"AWS::SQS::Queue"}}`,
			`{"A":{"Type":"AWS::SQS::Queue"},"B":{"Type":"AWS::SQS::Queue","DependsOn":"A"}}`,
			"none B [record]"},
		{"DeletionPolicy Retain keeps what is removed",
			`{"Q":{"Type":"AWS::SQS::Queue","DeletionPolicy":"Retain"},"R":{"Type":"AWS::SQS::Queue","DeletionPolicy":"RetainExceptOnCreate"}}`,
			`{}`,
			"delete Q [retain]\ndelete R [retain]"},
		{"UpdateReplacePolicy Retain keeps the old half",
			`{"Q":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":"a"}}}`,
			`{"Q":{"Type":"AWS::SQS::Queue","UpdateReplacePolicy":"Retain","Properties":{"QueueName":"b"}}}`,
			"replace Q [retain] QueueName!always"},
		{"a type whose halves can't coexist deletes first",
			`{"A":{"Type":"AWS::EC2::SubnetRouteTableAssociation","Properties":{"SubnetId":"s","RouteTableId":"r"}}}`,
			`{"A":{"Type":"AWS::EC2::SubnetRouteTableAssociation","Properties":{"SubnetId":"s2","RouteTableId":"r"}}}`,
			"replace A [first] SubnetId!always"},
		{"what refers to a replaced resource follows",
			`{` + with(role, "") + `,` + with(fn, "") + `}`,
			`{` + with(role, `,"Path":"/x/"`) + `,` + with(fn, "") + `}`,
			"replace Role Path!always\nupdate Fn [maybe] Role?<Role"},
		{"a replacement cascades through create-only properties",
			`{"T":{"Type":"AWS::SNS::Topic","Properties":{"TopicName":"a"}},
			  "S":{"Type":"AWS::SNS::Subscription","Properties":{"TopicArn":{"Ref":"T"},"Protocol":"sqs"}},
			  "P":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":{"Fn::Sub":"x-${S}"}}}}`,
			`{"T":{"Type":"AWS::SNS::Topic","Properties":{"TopicName":"b"}},
			  "S":{"Type":"AWS::SNS::Subscription","Properties":{"TopicArn":{"Ref":"T"},"Protocol":"sqs"}},
			  "P":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":{"Fn::Sub":"x-${S}"}}}}`,
			"replace T TopicName!always\nreplace S [maybe] TopicArn?!always<T\nupdate P [maybe] Value?<S"},
		{"DependsOn does not propagate",
			`{"T":{"Type":"AWS::SNS::Topic","Properties":{"TopicName":"a"}},"Q":{"Type":"AWS::SQS::Queue","DependsOn":"T"}}`,
			`{"T":{"Type":"AWS::SNS::Topic","Properties":{"TopicName":"b"}},"Q":{"Type":"AWS::SQS::Queue","DependsOn":"T"}}`,
			"replace T TopicName!always"},
		{"an update spreads to who reads the changed property",
			`{"P":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":"1"}},
			  "Q":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":{"Fn::GetAtt":"P.Value"}}},
			  "R":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":{"Ref":"P"}}}}`,
			`{"P":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":"2"}},
			  "Q":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":{"Fn::GetAtt":"P.Value"}}},
			  "R":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":{"Ref":"P"}}}}`,
			"update P Value\nupdate Q [maybe] Value?<P"},
		{"an update never replaces a dependent on suspicion",
			`{"P":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":"1"}},
			  "Q":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":{"Fn::GetAtt":"P.Value"}}}}`,
			`{"P":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":"2"}},
			  "Q":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":{"Fn::GetAtt":"P.Value"}}}}`,
			"update P Value\nupdate Q [maybe] QueueName?!maybe<P"},
		{"a launch template's versions change with it",
			`{"L":{"Type":"AWS::EC2::LaunchTemplate","Properties":{"LaunchTemplateData":{"ImageId":"a"}}},
			  "G":{"Type":"AWS::AutoScaling::AutoScalingGroup","Properties":{"MinSize":"1","MaxSize":"1","LaunchTemplate":{"LaunchTemplateId":{"Ref":"L"},"Version":{"Fn::GetAtt":["L","LatestVersionNumber"]}}}}}`,
			`{"L":{"Type":"AWS::EC2::LaunchTemplate","Properties":{"LaunchTemplateData":{"ImageId":"b"}}},
			  "G":{"Type":"AWS::AutoScaling::AutoScalingGroup","Properties":{"MinSize":"1","MaxSize":"1","LaunchTemplate":{"LaunchTemplateId":{"Ref":"L"},"Version":{"Fn::GetAtt":["L","LatestVersionNumber"]}}}}}`,
			"update L LaunchTemplateData.ImageId\nupdate G [maybe] LaunchTemplate.Version?!maybe<L"},
		{"a custom resource that runs again may answer anything",
			`{"C":{"Type":"Custom::X","Properties":{"ServiceToken":"t","A":"1"}},
			  "P":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":{"Fn::GetAtt":"C.Out"}}}}`,
			`{"C":{"Type":"Custom::X","Properties":{"ServiceToken":"t","A":"2"}},
			  "P":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":{"Fn::GetAtt":"C.Out"}}}}`,
			"update C A\nupdate P [maybe] Value?<C"},
		{"a reference to something new is a change of its own",
			`{"P":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":"x"}}}`,
			`{"P":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":{"Ref":"Q"}}},"Q":{"Type":"AWS::SQS::Queue"}}`,
			"update P Value?\ncreate Q"},
		{"own and propagated changes together are certain",
			`{` + with(role, "") + `,` + with(fn, "") + `}`,
			`{` + with(role, `,"Path":"/x/"`) + `,` + with(fn, `,"Timeout":9`) + `}`,
			"replace Role Path!always\nupdate Fn Role?<Role Timeout"},
		{"retyping an attribute replaces a table",
			`{"T":{"Type":"AWS::DynamoDB::Table","Properties":{"AttributeDefinitions":[{"AttributeName":"a","AttributeType":"S"}]}}}`,
			`{"T":{"Type":"AWS::DynamoDB::Table","Properties":{"AttributeDefinitions":[{"AttributeName":"a","AttributeType":"N"}]}}}`,
			"replace T AttributeDefinitions.0.AttributeType!always"},
		{"a new attribute does not",
			`{"T":{"Type":"AWS::DynamoDB::Table","Properties":{"AttributeDefinitions":[{"AttributeName":"a","AttributeType":"S"}]}}}`,
			`{"T":{"Type":"AWS::DynamoDB::Table","Properties":{"AttributeDefinitions":[{"AttributeName":"a","AttributeType":"S"},{"AttributeName":"b","AttributeType":"S"}]}}}`,
			"update T AttributeDefinitions.1"},
		{"a local index comes with its table only",
			`{"T":{"Type":"AWS::DynamoDB::Table","Properties":{"LocalSecondaryIndexes":[{"IndexName":"abc"}]}}}`,
			`{"T":{"Type":"AWS::DynamoDB::Table","Properties":{"LocalSecondaryIndexes":[{"IndexName":"abd"}]}}}`,
			"replace T LocalSecondaryIndexes.0.IndexName!always"},
		{"a dynamic reference compares as its text",
			`{"P":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":"{{resolve:ssm:a:1}}"}}}`,
			`{"P":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":"{{resolve:ssm:a:2}}"}}}`,
			"update P Value"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			result, diags := change(t, tt.from, tt.to)
			if len(diags) > 0 {
				t.Fatal(diags)
			}
			if got := brief(result.Changes); got != tt.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tt.want)
			}
		})
	}
}

func TestEquality(t *testing.T) {
	const p, q = `{"X":{"Type":"`, `"}}`
	for _, tt := range []struct {
		name, typ, from, to string
		same                bool
	}{
		{"a number is its text", "AWS::SQS::Queue", `{"DelaySeconds":5}`, `{"DelaySeconds":"5"}`, true},
		{"5.0 is 5 where a number belongs", "AWS::SQS::Queue", `{"DelaySeconds":"5.0"}`, `{"DelaySeconds":5}`, true},
		{"007 is 7 where a number belongs", "AWS::SQS::Queue", `{"DelaySeconds":"007"}`, `{"DelaySeconds":"7"}`, true},
		{"007 is not 7 where text belongs", "AWS::SQS::Queue", `{"QueueName":"007"}`, `{"QueueName":"7"}`, false},
		{"true is its text", "AWS::SQS::Queue", `{"FifoQueue":true}`, `{"FifoQueue":"true"}`, true},
		{"True is true where a boolean belongs", "AWS::SQS::Queue", `{"FifoQueue":"True"}`, `{"FifoQueue":true}`, true},
		{"True is not true where text belongs", "AWS::SQS::Queue", `{"QueueName":"True"}`, `{"QueueName":"true"}`, false},
		{"large numbers are not rounded", "AWS::SQS::Queue", `{"DelaySeconds":9007199254740993}`, `{"DelaySeconds":9007199254740992}`, false},
		{"a number stays a number in an unknown type", "Acme::A::B", `{"A":5}`, `{"A":"5.0"}`, true},
		{"texts differ in an unknown type", "Acme::A::B", `{"A":"5"}`, `{"A":"5.0"}`, false},
		{"types count inside free JSON", "AWS::IAM::Role", `{"AssumeRolePolicyDocument":{"A":"5"}}`, `{"AssumeRolePolicyDocument":{"A":5}}`, false},
		{"notation does not", "AWS::IAM::Role", `{"AssumeRolePolicyDocument":{"A":5.0}}`, `{"AssumeRolePolicyDocument":{"A":5}}`, true},
		{"tags have no order", "AWS::SQS::Queue",
			`{"Tags":[{"Key":"a","Value":"1"},{"Key":"b","Value":"2"}]}`, `{"Tags":[{"Key":"b","Value":"2"},{"Key":"a","Value":"1"}]}`, true},
		{"but values", "AWS::SQS::Queue",
			`{"Tags":[{"Key":"a","Value":"1"},{"Key":"b","Value":"2"}]}`, `{"Tags":[{"Key":"b","Value":"1"},{"Key":"a","Value":"2"}]}`, false},
		{"a duplicate is not nothing", "AWS::SQS::Queue",
			`{"Tags":[{"Key":"a","Value":"1"},{"Key":"a","Value":"1"}]}`, `{"Tags":[{"Key":"a","Value":"1"}]}`, false},
		{"lists have an order", "AWS::ECS::TaskDefinition", `{"ContainerDefinitions":[{"Command":["a","b"]}]}`, `{"ContainerDefinitions":[{"Command":["b","a"]}]}`, false},
		{"unless the schema says they have none", "AWS::ECS::TaskDefinition", `{"RequiresCompatibilities":["EC2","FARGATE"]}`, `{"RequiresCompatibilities":["FARGATE","EC2"]}`, true},
		{"an empty list is not absent", "AWS::SQS::Queue", `{"Tags":[]}`, `{}`, false},
		{"an empty object is not absent", "AWS::SQS::Queue", `{"RedrivePolicy":{}}`, `{}`, false},
		{"null is not text", "Acme::A::B", `{"A":null}`, `{"A":"null"}`, false},
		{"a list is not its only item", "Acme::A::B", `{"A":["x"]}`, `{"A":"x"}`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := resources(t, p+tt.typ+q)
			in.Record = &state.Record{Resources: map[string]*state.Resource{
				"X": {PhysicalID: "x", ResourceType: tt.typ, Properties: decode(t, tt.from)},
			}}
			in.Template.Resources["X"].Properties = decode(t, tt.to)
			result, diags := Compute(in)
			if len(diags) > 0 {
				t.Fatal(diags)
			}
			if same := len(result.Changes) == 0; same != tt.same {
				t.Errorf("same: %v\n%s", same, brief(result.Changes))
			}
			// Equality has no direction.
			in.Record.Resources["X"].Properties, in.Template.Resources["X"].Properties = decode(t, tt.to), decode(t, tt.from)
			if back, _ := Compute(in); (len(back.Changes) == 0) != tt.same {
				t.Errorf("the other way round:\n%s", brief(back.Changes))
			}
		})
	}
}

func TestOnlyTheDifferingLeavesAreShown(t *testing.T) {
	result, _ := change(t,
		`{"F":{"Type":"AWS::EC2::SecurityGroup","Properties":{"GroupDescription":"d","SecurityGroupIngress":[{"FromPort":1},{"FromPort":2},{"FromPort":3}],"Tags":[{"Key":"a","Value":"1"},{"Key":"b","Value":"2"}]}}}`,
		`{"F":{"Type":"AWS::EC2::SecurityGroup","Properties":{"GroupDescription":"d","SecurityGroupIngress":[{"FromPort":1},{"FromPort":3}],"Tags":[{"Key":"b","Value":"3"},{"Key":"a","Value":"1"}]}}}`)
	if got, want := brief(result.Changes), "update F SecurityGroupIngress.1 Tags.0.Value"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	tag := result.Changes[0].Changes[1]
	if tag.Old != "2" || tag.New != "3" {
		t.Errorf("shown as %v → %v", tag.Old, tag.New)
	}
}

func TestUnknownValuesSayWhatTheyWaitFor(t *testing.T) {
	in := resources(t, `{"Q":{"Type":"AWS::SQS::Queue"},"F":{"Type":"AWS::Lambda::Function","Properties":{"Environment":{"Variables":{"URL":{"Ref":"Q"},"ARN":{"Fn::GetAtt":["Q","Arn"]},"X":"y"}}}}}`)
	result, diags := Compute(in)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	variables := result.Desired["F"]["Environment"].(map[string]any)["Variables"].(map[string]any)
	if variables["X"] != "y" {
		t.Errorf("a known sibling is lost: %v", variables)
	}
	if u, ok := variables["ARN"].(intrinsic.Unknown); !ok || u.Refs[0] != "Q.Arn" {
		t.Errorf("ARN is %v", variables["ARN"])
	}
	shown := result.Changes[1].Changes[0]
	if shown.Path != "Environment" || strings.Join(shown.NewRefs, " ") != "Q Q.Arn" || shown.Unknown {
		t.Errorf("shown as %+v", shown)
	}
	if got := shown.New.(map[string]any)["Variables"].(map[string]any)["URL"]; got != "(known after deploy: Q)" {
		t.Errorf("displayed as %v", got)
	}
}

func TestDependenciesAreDependsOnFirstOnceEachResourcesOnly(t *testing.T) {
	in := parse(t, `{"Parameters":{"P":{"Type":"String","Default":"x"}},"Resources":{
		"A":{"Type":"AWS::SQS::Queue"},"B":{"Type":"AWS::SQS::Queue"},"M":{"Type":"AWS::CDK::Metadata"},
		"C":{"Type":"AWS::SQS::Queue","DependsOn":["B"],"Properties":{"QueueName":{"Fn::Sub":"${A.QueueName}-${B.QueueName}-${P}-${A}"}}}}}`)
	result, diags := Compute(in)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	if got := strings.Join(result.Dependencies["C"], " "); got != "B A" {
		t.Errorf("dependencies of C: %s", got)
	}
	if _, there := result.Dependencies["M"]; there {
		t.Error("the CDK's metadata has dependencies")
	}
}

func TestConditionFalseIsDeletion(t *testing.T) {
	const source = `{"Conditions":{"C":{"Fn::Equals":["a","%s"]}},"Resources":{"Q":{"Type":"AWS::SQS::Queue","Condition":"C"},"R":{"Type":"AWS::SQS::Queue"}}}`
	in := parse(t, strings.Replace(source, "%s", "b", 1))
	in.Record = mustDeploy(t, parse(t, strings.Replace(source, "%s", "a", 1)))
	result, diags := Compute(in)
	if got := brief(result.Changes); len(diags) > 0 || got != "delete Q" {
		t.Errorf("%s, %v", got, diags)
	}
}

func TestAValueThatCanNotBeResolvedIsAnError(t *testing.T) {
	in := resources(t, `{"A":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":{"Fn::Select":["9",["a"]]}}},"B":{"Type":"AWS::SQS::Queue"}}`)
	result, diags := Compute(in)
	if !diags.HasErrors() || diags[0].LogicalID != "A" || !strings.HasPrefix(diags[0].Path, "Properties.QueueName") {
		t.Errorf("diagnostics %v", diags)
	}
	if got := brief(result.Changes); got != "create B" {
		t.Errorf("the rest is %s", got)
	}
}

func TestPendingImportsAreSpeculative(t *testing.T) {
	const source = `{"P":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":{"Fn::ImportValue":"Other:Name"}}}}`
	in := resources(t, source)
	in.Record = mustDeploy(t, in)
	in.Scope.Imports, in.Scope.PendingImports = nil, map[string]bool{"Other:Name": true}
	result, diags := Compute(in)
	if got := brief(result.Changes); len(diags) > 0 || got != "update P [maybe] Value?<export:Other:Name" {
		t.Errorf("%s, %v", got, diags)
	}
}

func TestReassessTellsWhatASpeculativeChangeReallyIs(t *testing.T) {
	in := Input{}
	queue := in.lookup("AWS::SQS::Queue")
	was := map[string]any{"QueueName": "a", "DelaySeconds": "5"}
	for _, tt := range []struct {
		name string
		now  map[string]any
		want Action
	}{
		{"nothing", map[string]any{"QueueName": "a", "DelaySeconds": "5"}, ActionNone},
		{"an update", map[string]any{"QueueName": "a", "DelaySeconds": "6"}, ActionUpdate},
		{"a replacement", map[string]any{"QueueName": "b", "DelaySeconds": "6"}, ActionReplace},
	} {
		if got, _ := Reassess(queue, "AWS::SQS::Queue", was, tt.now); got != tt.want {
			t.Errorf("%s: %s", tt.name, got)
		}
	}
}
