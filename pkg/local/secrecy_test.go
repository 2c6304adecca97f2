package local

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// marker stands in every text of the template that is nobody's name. Names are what events and messages are about:
// they become physical ids.
const marker = "mArKeR7f3a9c"

// markedTemplate holds the marker wherever a template can hold a text: properties, tags, descriptions, environment,
// documents, parameters, outputs, metadata. Every version holds other texts.
func markedTemplate(version int) object {
	text := func(rest string) string { return fmt.Sprintf("%s %s v%d", marker, rest, version) }
	word := fmt.Sprintf("%sV%d", marker, version)
	tags := []any{object{"Key": "purpose", "Value": text("tag")}}
	trust := object{"Version": "2012-10-17", "Statement": []any{object{
		"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": object{"Service": "lambda.amazonaws.com"},
		"Condition": object{"StringEquals": object{"sts:ExternalId": word}},
	}}}
	allow := func(action string, on any) object {
		return object{"Version": "2012-10-17", "Statement": []any{object{"Sid": word, "Effect": "Allow", "Action": action, "Resource": on}}}
	}
	noted := func(r object) object { return with(r, "Metadata", object{"note": text("metadata")}) }
	resources := object{
		"Topic":     noted(resource("AWS::SNS::Topic", object{"DisplayName": text("name"), "Tags": tags})),
		"Queue":     noted(resource("AWS::SQS::Queue", object{"Tags": tags})),
		"Parameter": resource("AWS::SSM::Parameter", object{"Type": "String", "Value": text("value"), "Description": text("description"), "Tags": object{"purpose": text("tag")}}),
		"Joined":    resource("AWS::SSM::Parameter", object{"Type": "String", "Value": object{"Fn::Join": []any{" ", []any{ref("Plain"), ref("Hidden"), att("Parameter", "Value")}}}}),
		"Role":      resource("AWS::IAM::Role", object{"Description": text("role"), "AssumeRolePolicyDocument": trust, "Tags": tags}),
		"Policy":    resource("AWS::IAM::Policy", object{"PolicyName": "send", "Roles": []any{ref("Role")}, "PolicyDocument": allow("sqs:SendMessage", att("Queue", "Arn"))}),
		"Managed":   resource("AWS::IAM::ManagedPolicy", object{"Description": text("fixed")[:len(marker)], "PolicyDocument": allow("sqs:ReceiveMessage", att("Queue", "Arn")), "Roles": []any{ref("Role")}}),
		"Function": with(resource("AWS::Lambda::Function", object{
			"Code": object{"ZipFile": "// " + text("code")}, "Handler": "index." + word, "Runtime": "nodejs22.x", "Role": att("Role", "Arn"),
			"Description": text("function"), "Environment": object{"Variables": object{"TOKEN": text("variable"), "HIDDEN": ref("Hidden")}}, "Tags": tags,
		}), "DependsOn", "Policy"),
		"Custom": resource("Custom::Thing", object{"ServiceToken": att("Function", "Arn"), "Text": text("custom"), "Nested": object{"List": []any{text("deep"), ref("Hidden")}}}),
		"Other":  resource("AWS::CloudFormation::CustomResource", object{"ServiceToken": att("Function", "Arn"), "Text": text("custom"), "From": att("Custom", "Token")}),
		"Table": resource("AWS::DynamoDB::Table", object{
			"AttributeDefinitions": []any{object{"AttributeName": "id", "AttributeType": "S"}}, "KeySchema": []any{object{"AttributeName": "id", "KeyType": "HASH"}},
			"BillingMode": "PAY_PER_REQUEST", "Tags": tags,
		}),
		"Bucket": resource("AWS::S3::Bucket", object{"Tags": tags, "LifecycleConfiguration": object{"Rules": []any{
			object{"Id": word, "Status": "Enabled", "Prefix": word + "/", "ExpirationInDays": 30}}}}),
		"Secret": resource("AWS::SecretsManager::Secret", object{"Description": text("secret"), "SecretString": text("secret"), "Tags": tags}),
		"Logs":   resource("AWS::Logs::LogGroup", object{"RetentionInDays": 7, "Tags": tags}),
		"Rule": resource("AWS::Events::Rule", object{"Description": text("rule"), "State": "ENABLED", "EventPattern": object{"source": []any{word}},
			"Targets": []any{object{"Id": "queue", "Arn": att("Queue", "Arn"), "Input": `{"text":"` + text("input") + `"}`}}}),
		"Alarm": resource("AWS::CloudWatch::Alarm", object{"AlarmDescription": text("alarm"), "Namespace": word, "MetricName": word, "Statistic": "Sum",
			"Period": 300, "EvaluationPeriods": 1, "Threshold": 1, "ComparisonOperator": "GreaterThanThreshold", "Dimensions": []any{object{"Name": word, "Value": word}}}),
		"Machine": resource("AWS::StepFunctions::StateMachine", object{"RoleArn": att("Role", "Arn"), "Tags": tags,
			"DefinitionString": `{"Comment":"` + text("machine") + `","StartAt":"A","States":{"A":{"Type":"Succeed"}}}`}),
		"Cluster": resource("AWS::ECS::Cluster", object{"Tags": tags}),
		"Task": resource("AWS::ECS::TaskDefinition", object{"Family": "marked", "Tags": tags, "ContainerDefinitions": []any{object{
			"Name": "web", "Image": "public.ecr.aws/nginx/nginx:1", "Memory": 128, "Environment": []any{object{"Name": "TOKEN", "Value": text("variable")}},
			"DockerLabels": object{"purpose": text("label")}, "Command": []any{text("command")}}}}),
		"Repository": resource("AWS::ECR::Repository", object{"Tags": tags, "LifecyclePolicy": object{"LifecyclePolicyText": `{"rules":[{"rulePriority":1,"description":"` + text("rule") + `","selection":{"tagStatus":"untagged","countType":"imageCountMoreThan","countNumber":9},"action":{"type":"expire"}}]}`}}),
		"Key":        resource("AWS::KMS::Key", object{"Description": text("key"), "Tags": tags, "KeyPolicy": allow("kms:*", "*")}),
		"Pool":       resource("AWS::Cognito::UserPool", object{"UserPoolTags": object{"purpose": text("tag")}, "EmailVerificationSubject": text("subject")}),
		"Api":        resource("AWS::ApiGatewayV2::Api", object{"Name": "marked", "ProtocolType": "HTTP", "Description": text("api"), "Tags": object{"purpose": text("tag")}}),
		"Network":    resource("AWS::EC2::VPC", object{"CidrBlock": "10.8.0.0/16", "Tags": tags}),
		"Group":      resource("AWS::EC2::SecurityGroup", object{"GroupDescription": marker, "VpcId": ref("Network"), "Tags": tags}),
		"Dashboard":  resource("AWS::CloudWatch::Dashboard", object{"DashboardBody": `{"widgets":[{"type":"text","x":0,"y":0,"width":6,"height":6,"properties":{"markdown":"` + text("widget") + `"}}]}`}),
		"Stream":     resource("AWS::Kinesis::Stream", object{"ShardCount": 1, "Tags": tags}),
	}
	return object{
		"Description": text("template"), "Metadata": object{"note": text("metadata")},
		"Parameters": object{
			"Plain":  object{"Type": "String", "Default": text("parameter"), "Description": text("parameter")},
			"Hidden": object{"Type": "String", "Default": text("hidden"), "NoEcho": true},
		},
		"Mappings":  object{"Words": object{"any": object{"text": text("mapping")}}},
		"Resources": resources,
		"Outputs": object{
			"Text":   object{"Value": text("output"), "Description": text("output")},
			"Joined": object{"Value": object{"Fn::Sub": "${Plain} of ${Parameter.Value}"}, "Export": object{"Name": "marked-export"}},
			"Mapped": object{"Value": object{"Fn::FindInMap": []any{"Words", "any", "text"}}},
		},
	}
}

// TestNoPropertyValueIsInHistoriesEventsHeadersLogsOrErrors deploys a template full of a marker, changes it, fails in
// several ways, rolls back and destroys; then it looks for the marker in everything that people read or that is kept
// of a run beside its working files.
func TestNoPropertyValueIsInHistoriesEventsHeadersLogsOrErrors(t *testing.T) {
	var logs lockedBuffer
	f := &faults{}
	dir := t.TempDir()
	p := openPlane(t, Options{
		Dir: dir, WrapProvider: f.decorator(),
		Logger: slog.New(slog.NewJSONHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	// Something to log: one event that can't be written.
	p.engine.Log = &lossyLog{Store: p.engine.Log}
	v1 := writeApp(t, map[string]object{"Marked": markedTemplate(1)}, nil)
	v2 := writeApp(t, map[string]object{"Marked": markedTemplate(2)}, nil)
	v3 := writeApp(t, map[string]object{"Marked": markedTemplate(3)}, nil)
	types := map[string]bool{}
	for _, r := range markedTemplate(1)["Resources"].(object) {
		types[r.(object)["Type"].(string)] = true
	}
	if len(types) < 20 {
		t.Fatalf("the template has %d resource types, at least 20 are wanted", len(types))
	}
	var headers []runlog.Header
	var texts []string
	step := func(what string, want runlog.Result, do func() runlog.Header) {
		t.Helper()
		h := do()
		headers = append(headers, h)
		texts = append(texts, story(t, p, h))
		if h.Result != want {
			t.Errorf("%s is %s, want %s: %s", what, h.Result, want, story(t, p, h))
		}
	}
	deploy := func() runlog.Header { return deployWith(t, p, v1, run.Options{}) }
	step("the plan", runlog.ResultSucceeded, func() runlog.Header {
		return submit(t, p, v1, run.Submission{Command: runlog.CommandPlan, Of: runlog.CommandDeploy})
	})
	step("the first deploy", runlog.ResultSucceeded, deploy)
	step("the change", runlog.ResultSucceeded, func() runlog.Header { return deployWith(t, p, v2, run.Options{}) })

	// A service that quotes what it was sent.
	f.set(func(s string, nth int) *provider.Error {
		if s == "update Function" && nth == 1 {
			return &provider.Error{Kind: provider.KindInvalid, Code: "InvalidRequest", Message: "Value '" + marker + " variable v3' is not valid"}
		}
		return nil
	})
	step("a change that a service refuses", runlog.ResultFailed, func() runlog.Header { return deployWith(t, p, v3, run.Options{}) })
	f.set(nil)

	// Refusals of the sandbox itself, and of the planner.
	for what, spoil := range map[string]func(r object){
		"a value that is not allowed":        func(r object) { props(r, "Parameter")["Type"] = marker },
		"a pattern that is not kept":         func(r object) { props(r, "Managed")["Path"] = marker },
		"a text where a number belongs":      func(r object) { props(r, "Queue")["VisibilityTimeout"] = marker },
		"a text where an object belongs":     func(r object) { props(r, "Function")["Environment"] = marker },
		"a property that does not exist":     func(r object) { props(r, "Queue")["Colour"] = marker },
		"an attribute of a resource's texts": func(r object) { props(r, "Parameter")["Value"] = att("Queue", "Colour") },
		"an index that is out of its list":   func(r object) { props(r, "Parameter")["Value"] = object{"Fn::Select": []any{7, []any{marker, marker}}} },
		"a text that can't be split": func(r object) {
			props(r, "Parameter")["Value"] = object{"Fn::Select": []any{3, object{"Fn::Split": []any{",", marker}}}}
		},
		"a mapping without that key": func(r object) {
			props(r, "Parameter")["Value"] = object{"Fn::FindInMap": []any{"Words", "any", "other"}}
		},
		"a number of addresses that is a text": func(r object) {
			props(r, "Network")["CidrBlock"] = object{"Fn::Select": []any{0, object{"Fn::Cidr": []any{marker, 2, 8}}}}
		},
	} {
		template := markedTemplate(3)
		spoil(template["Resources"].(object))
		bad := writeApp(t, map[string]object{"Marked": template}, nil)
		step(what, runlog.ResultFailed, func() runlog.Header { return deployWith(t, p, bad, run.Options{}) })
	}
	short := markedTemplate(3)
	short["Parameters"].(object)["Plain"].(object)["MaxLength"] = 3
	step("a parameter that is too long", runlog.ResultFailed, func() runlog.Header {
		return deployWith(t, p, writeApp(t, map[string]object{"Marked": short}, nil), run.Options{})
	})
	step("the way back", runlog.ResultSucceeded, deploy)
	step("the destroy", runlog.ResultSucceeded, func() runlog.Header {
		return submit(t, p, v1, run.Submission{Command: runlog.CommandDestroy, Options: run.Options{DeleteRetained: true}})
	})

	for i, text := range texts {
		clean(t, fmt.Sprintf("the error text of run %d", i), []byte(text))
	}
	clean(t, "the log", logs.Bytes())
	if len(logs.Bytes()) == 0 {
		t.Error("nothing was logged, although an event was lost")
	}
	runs, err := p.Log().ListRuns(context.Background(), runlog.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	histories := 0
	for _, h := range runs {
		events, err := p.History(context.Background(), h.RunID)
		if err != nil {
			continue // a stack's run that its deployment never began has no execution
		}
		histories++
		data, err := json.Marshal(events)
		if err != nil {
			t.Fatal(err)
		}
		clean(t, "the history of run "+h.RunID, data)
	}
	if histories < 2*4 {
		t.Errorf("%d histories were looked at", histories)
	}
	// As the bytes are stored, not as they are decoded.
	seen := rawRows(t, dir, "slipway.db", map[string]string{
		"events": "body", "runs": "body", "executions": "body", "histories": "body", "heads": "run_id",
	})
	seen["deployments"] = rawObjects(t, p, "/deployments/") // what a closed run leaves beside the record
	t.Logf("%d runs, %d histories, %d types, %v rows looked at, %d bytes of log", len(runs), histories, len(types), seen, len(logs.Bytes()))
	for _, what := range []string{"events", "runs", "executions", "histories", "deployments"} {
		if seen[what] == 0 {
			t.Errorf("nothing of %s was looked at", what)
		}
	}
}

func clean(t *testing.T, where string, data []byte) {
	t.Helper()
	if i := bytes.Index(data, []byte(marker)); i >= 0 {
		t.Errorf("a property value is in %s: …%s…", where, data[max(0, i-160):min(len(data), i+60)])
	}
}

// rawRows looks for the marker in the rows of a database and counts them.
func rawRows(t *testing.T, dir, file string, columns map[string]string) map[string]int {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, file)+"?mode=ro&_pragma=busy_timeout(20000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // it was only read
	seen := map[string]int{}
	for table, column := range columns {
		rows, err := db.Query("SELECT CAST(" + column + " AS BLOB) FROM " + table)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var body []byte
			if err := rows.Scan(&body); err != nil {
				t.Fatal(err)
			}
			seen[table]++
			clean(t, "a row of "+table, body)
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return seen
}

// rawObjects looks for the marker in the stored objects of a kind and counts them.
func rawObjects(t *testing.T, p *Plane, kind string) int {
	t.Helper()
	infos, err := p.engine.Objects.List(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, i := range infos {
		if !strings.Contains(i.Key, kind) {
			continue
		}
		obj, err := p.engine.Objects.Get(context.Background(), i.Key)
		if err != nil {
			t.Fatal(err)
		}
		n++
		clean(t, "the object "+i.Key, obj.Body)
	}
	return n
}

// lossyLog loses the first event of a resource.
type lossyLog struct {
	runlog.Store
	once sync.Once
}

func (l *lossyLog) Append(ctx context.Context, events ...runlog.Event) error {
	var err error
	if len(events) > 0 && events[0].Type == runlog.OpStarted {
		l.once.Do(func() { err = errors.New("the event was lost by the test") })
	}
	if err != nil {
		return err
	}
	return l.Store.Append(ctx, events...)
}

// lockedBuffer is a buffer that several goroutines may write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) Bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.b.Bytes())
}
