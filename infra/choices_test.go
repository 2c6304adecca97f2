package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/controlplane"
	"github.com/slipway-cdk/slipway/pkg/iampolicy"
)

func TestWhatIsPutIntoAnInboxIsToldToTheTrigger(t *testing.T) {
	f := readTemplate(t)
	rule := f.Resources["InboxObject"].Properties
	if got := text(at(rule, "EventPattern")); got != `{"detail":{"bucket":{"name":[{"Ref":"Uploads"}]},"object":{"key":[{"prefix":"inbox/"}]}},"detail-type":["Object Created"],"source":["aws.s3"]}` {
		t.Errorf("the rule looks for %s", got)
	}
	for path, want := range map[string]string{"Targets.0.Arn": "[Trigger.Arn]", "Targets.0.DeadLetterConfig.Arn": "[Undelivered.Arn]"} {
		if got := rendered(at(rule, path)); got != want {
			t.Errorf("%s of the rule is %s, want %s", path, got, want)
		}
	}
	for path, want := range map[string]string{"FunctionName": "[Trigger]", "Principal": "events.amazonaws.com", "SourceArn": "[InboxObject.Arn]"} {
		if got := rendered(at(f.Resources["InboxPermission"].Properties, path)); got != want {
			t.Errorf("%s of the permission is %s, want %s", path, got, want)
		}
	}
}

func TestNothingThatIsToldIsLost(t *testing.T) {
	f := readTemplate(t)
	for id, r := range f.of(t, "AWS::Events::Rule", 3) {
		targets := at(r.Properties, "Targets").([]any)
		for _, target := range targets {
			if rendered(at(target, "DeadLetterConfig.Arn")) != "[Undelivered.Arn]" || at(target, "RetryPolicy.MaximumRetryAttempts") == nil {
				t.Errorf("%s: what can't be delivered is lost: %s", id, text(target))
			}
		}
	}
	for id, r := range f.of(t, "AWS::Lambda::EventInvokeConfig", 2) {
		fn := strings.TrimSuffix(id, "Invocations")
		if rendered(r.Properties["FunctionName"]) != "["+fn+"]" || rendered(at(r.Properties, "DestinationConfig.OnFailure.Destination")) != "[Undelivered.Arn]" {
			t.Errorf("%s: what the function can't do is lost: %s", id, text(r.Properties))
		}
		if got := f.allowed(fn+"Role", "sqs"); got["[Undelivered.Arn]"] != " SendMessage" {
			t.Errorf("%s may not send to the queue: %v", fn, got)
		}
	}
}

func TestFunctionsRunInAVPCIfThereIsOne(t *testing.T) {
	f := readTemplate(t)
	if got := text(f.Conditions["InVpc"]); got != `{"Fn::Not":[{"Fn::Equals":[{"Fn::Join":["",{"Ref":"SubnetIds"}]},""]}]}` {
		t.Errorf("the condition is %s", got)
	}
	const want = `{"Fn::If":["InVpc",{"SecurityGroupIds":{"Ref":"SecurityGroupIds"},"SubnetIds":{"Ref":"SubnetIds"}},{"Ref":"AWS::NoValue"}]}`
	for id, r := range f.of(t, "AWS::Lambda::Function", 5) {
		if got := text(r.Properties["VpcConfig"]); got != want {
			t.Errorf("%s: the VPC is %s", id, got)
		}
		// Lambda may make interfaces for the function; the function itself may not.
		var denied []any
		for _, s := range f.statements(id + "Role") {
			if at(s, "Effect") == "Deny" {
				denied = append(denied, s)
			}
		}
		name := strings.ToLower(id)
		if len(denied) != 1 || !strings.HasSuffix(rendered(at(denied[0], "Condition.ArnEquals.lambda:SourceFunctionArn")), ":function:[NamePrefix]-"+name) {
			t.Errorf("%s: its own code may make network interfaces: %s", id, text(denied))
		}
	}
}

func TestKeysOfTheTeamsOwnAreUsedThroughTheirServiceOnly(t *testing.T) {
	f := readTemplate(t)
	for _, role := range []string{"PlannerRole", "ProvisionerRole", "PublisherRole", "JanitorRole"} {
		for _, s := range f.statements(role) {
			for _, on := range at(s, "Resource").([]any) {
				if ref := rendered(on); strings.HasSuffix(ref, "KeyArn]") && !strings.HasSuffix(rendered(at(s, "Condition.StringLike.kms:ViaService")), ".*.amazonaws.com*") {
					t.Errorf("%s may use %s by itself: %s", role, ref, text(s))
				}
			}
		}
	}
}

func TestTheCallersPolicyIsTheOneThatIsPrinted(t *testing.T) {
	f := readTemplate(t)
	raw := f.Resources["CallerPolicy"].Properties["PolicyDocument"]
	var statements []any
	for _, s := range at(raw, "Statement").([]any) {
		if chosen, ok := at(s, "Fn::If").([]any); ok {
			if when := map[any]string{"HasUploadsKey": controlplane.UploadsKeyStatement, "HasTableKey": controlplane.TableKeyStatement}[chosen[0]]; when != at(chosen[1], "Sid") {
				t.Errorf("%s is there when %v", text(at(chosen[1], "Sid")), chosen[0])
			}
			s = chosen[1]
		}
		statements = append(statements, s)
	}
	got, err := iampolicy.Parse([]byte(text(map[string]any{"Version": iampolicy.Version, "Statement": resolved(statements)})))
	if err != nil {
		t.Fatal(err)
	}
	want := controlplane.CallerPolicy(controlplane.CallerScope{
		Plane: "[NamePrefix]", Partition: "[AWS::Partition]", Region: "[AWS::Region]", Account: "[AWS::AccountId]", StateMachine: "[RunMachine.Arn]", Table: "[RunLog]",
		UploadsBucket: "[Uploads]", VaultKey: "[Vault.Arn]", UploadsKey: "[UploadsKeyArn]", TableKey: "[TableKeyArn]",
	})
	if text(got) != text(want) {
		t.Errorf("the template's is\n%s\nwant\n%s", text(got), text(want))
	}
}

// resolved replaces references in a value by their names in brackets.
func resolved(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = resolved(v[i])
		}
		return out
	case map[string]any:
		if len(v) == 1 && (v["Ref"] != nil || v["Fn::GetAtt"] != nil || v["Fn::Join"] != nil) {
			return rendered(v)
		}
		out := map[string]any{}
		for k, member := range v {
			out[k] = resolved(member)
		}
		return out
	}
	return v
}

func TestTheSampleOfAnInboxEventIsOneThatTheRuleMatches(t *testing.T) {
	b, err := os.ReadFile("../events/trigger-object-created.json")
	if err != nil {
		t.Fatal(err)
	}
	var event struct {
		Source string
		Type   string `json:"detail-type"`
		Detail struct {
			Bucket struct{ Name string }
			Object struct {
				Key     string
				Version string `json:"version-id"`
			}
		}
	}
	if err := json.Unmarshal(b, &event); err != nil {
		t.Fatal(err)
	}
	if event.Source != "aws.s3" || event.Type != "Object Created" || event.Detail.Bucket.Name == "" || !strings.HasPrefix(event.Detail.Object.Key, controlplane.InboxPrefix) || event.Detail.Object.Version == "" {
		t.Errorf("the sample is %+v", event)
	}
}

func TestNoRuleIsBroken(t *testing.T) {
	assemblyDir(t)
	for _, p := range synthesized.problems {
		t.Error(p)
	}
}
