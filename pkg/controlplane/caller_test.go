package controlplane

import (
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/iampolicy"
)

func TestACallerMayDoWhatItNeedsAndNothingElse(t *testing.T) {
	policy := CallerPolicy(described().Scope("slipway"))
	me := func(more ...string) map[string][]string {
		out := map[string][]string{"aws:userid": {"AROAEXAMPLE:me@acme"}}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = append(out[more[i]], more[i+1])
		}
		return out
	}
	const table = "arn:aws:dynamodb:eu-west-1:111122223333:table/runs"
	const bucket = "arn:aws:s3:::uploads-bucket"
	for _, c := range []struct {
		call    iampolicy.Call
		allowed bool
	}{
		{iampolicy.Call{Action: "ssm:GetParameter", Resource: "arn:aws:ssm:eu-west-1:111122223333:parameter/slipway/control-plane", Context: me()}, true},
		{iampolicy.Call{Action: "ssm:GetParameter", Resource: "arn:aws:ssm:eu-west-1:111122223333:parameter/database/password", Context: me()}, false},
		{iampolicy.Call{Action: "s3:PutObject", Resource: bucket + "/uploads/AROAEXAMPLE:me@acme/a.zip", Context: me()}, true},
		{iampolicy.Call{Action: "s3:PutObject", Resource: bucket + "/uploads/AROAEXAMPLE:you@acme/a.zip", Context: me()}, false},
		{iampolicy.Call{Action: "s3:GetObject", Resource: bucket + "/uploads/AROAEXAMPLE:you@acme/a.zip", Context: me()}, false},
		{iampolicy.Call{Action: "s3:PutObject", Resource: bucket + "/inbox/ci/a.zip", Context: me()}, false},
		{iampolicy.Call{Action: "s3:DeleteObject", Resource: bucket + "/uploads/AROAEXAMPLE:me@acme/a.zip", Context: me()}, false},
		{iampolicy.Call{Action: "s3:ListBucket", Resource: bucket, Context: me("s3:prefix", "uploads/AROAEXAMPLE:me@acme/abc")}, false},
		{iampolicy.Call{Action: "s3:ListBucket", Resource: bucket, Context: me("s3:prefix", "uploads/")}, false},
		{iampolicy.Call{Action: "s3:ListBucket", Resource: bucket, Context: me()}, false},
		{iampolicy.Call{Action: "s3:GetObject", Resource: "arn:aws:s3:::acme-state/slipway/runs/r/request.json", Context: me()}, false},
		{iampolicy.Call{Action: "s3:GetObject", Resource: "arn:aws:s3:::acme-state/cdkd/App/eu-west-1/state.json", Context: me()}, false},
		{iampolicy.Call{Action: "s3:PutObject", Resource: "arn:aws:s3:::acme-state/slipway/policy.json", Context: me()}, false},
		{iampolicy.Call{Action: "states:StartExecution", Resource: "arn:aws:states:eu-west-1:111122223333:stateMachine:slipway-run", Context: me()}, true},
		{iampolicy.Call{Action: "states:StartExecution", Resource: "arn:aws:states:eu-west-1:111122223333:stateMachine:slipway-settle", Context: me()}, false},
		{iampolicy.Call{Action: "states:DescribeExecution", Resource: "arn:aws:states:eu-west-1:111122223333:execution:slipway-run:a", Context: me()}, false},
		{iampolicy.Call{Action: "states:StopExecution", Resource: "arn:aws:states:eu-west-1:111122223333:execution:slipway-run:a", Context: me()}, false},
		{iampolicy.Call{Action: "dynamodb:Query", Resource: table, Context: me("dynamodb:LeadingKeys", "run#r")}, true},
		{iampolicy.Call{Action: "dynamodb:GetItem", Resource: table, Context: me("dynamodb:LeadingKeys", "stack#1#r#App")}, true},
		{iampolicy.Call{Action: "dynamodb:BatchGetItem", Resource: table, Context: me("dynamodb:LeadingKeys", "run#r", "dynamodb:LeadingKeys", "run#s")}, true},
		{iampolicy.Call{Action: "dynamodb:Query", Resource: table, Context: me("dynamodb:LeadingKeys", "ops#r")}, false},
		{iampolicy.Call{Action: "dynamodb:BatchGetItem", Resource: table, Context: me("dynamodb:LeadingKeys", "run#r", "dynamodb:LeadingKeys", "ops#r")}, false},
		{iampolicy.Call{Action: "dynamodb:Scan", Resource: table, Context: me()}, false},
		{iampolicy.Call{Action: "dynamodb:PutItem", Resource: table, Context: me("dynamodb:LeadingKeys", "run#r")}, false},
		{iampolicy.Call{Action: "dynamodb:Query", Resource: table + "/index/runs", Context: me("dynamodb:LeadingKeys", "run")}, true},
		{iampolicy.Call{Action: "lambda:InvokeFunction", Resource: "arn:aws:lambda:eu-west-1:111122223333:function:slipway-janitor", Context: me()}, false},
		{iampolicy.Call{Action: "kms:Decrypt", Resource: "arn:aws:kms:eu-west-1:111122223333:key/1", Context: me()}, false},
		{iampolicy.Call{Action: "kms:GenerateDataKey", Resource: "arn:aws:kms:eu-west-1:111122223333:key/1", Context: me("kms:EncryptionContext:slipway:context", "uploads/AROAEXAMPLE:me@acme/submissions/r.json")}, true},
		{iampolicy.Call{Action: "kms:GenerateDataKey", Resource: "arn:aws:kms:eu-west-1:111122223333:key/1", Context: me("kms:EncryptionContext:slipway:context", "uploads/AROAEXAMPLE:you@acme/submissions/r.json")}, false},
		{iampolicy.Call{Action: "sts:AssumeRole", Resource: "arn:aws:iam::111122223333:role/slipway-execution-app", Context: me()}, false},
	} {
		got, err := iampolicy.Evaluate(c.call, policy)
		if err != nil || got.Allowed != c.allowed {
			t.Errorf("%s on %s with %v: allowed is %t, %v", c.call.Action, c.call.Resource, c.call.Context, got.Allowed, err)
		}
	}
}

func TestWithKeysOfTheTeamsOwnACallerMayUseThem(t *testing.T) {
	scope := described().Scope("slipway")
	scope.UploadsKey, scope.TableKey = "arn:aws:kms:eu-west-1:111122223333:key/u", "arn:aws:kms:eu-west-1:111122223333:key/t"
	policy := CallerPolicy(scope)
	for via, want := range map[string]bool{"s3.eu-west-1.amazonaws.com": true, "dynamodb.eu-west-1.amazonaws.com": false} {
		got, err := iampolicy.Evaluate(iampolicy.Call{Action: "kms:GenerateDataKey", Resource: scope.UploadsKey, Context: map[string][]string{"kms:ViaService": {via}}}, policy)
		if err != nil || got.Allowed != want {
			t.Errorf("the key of the uploads by way of %s: %t, %v", via, got.Allowed, err)
		}
	}
	b, err := policy.JSON()
	if err != nil || len(b) > 6144 || strings.Contains(string(b), `"*"`) {
		t.Errorf("the policy has %d bytes of the 6,144 that a managed policy may have, or is for everything: %v\n%s", len(b), err, b)
	}
}
