package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/iampolicy"
	"github.com/slipway-cdk/slipway/pkg/iampolicy/calls"
)

// installation values are what the recording's control plane was made with: see package leastprivilege.
var installed = strings.NewReplacer(
	"[AWS::Partition]", "aws", "[AWS::Region]", "us-east-1", "[AWS::AccountId]", "210987654321", "[NamePrefix]", "slipway",
	"[StateBucketName]", "state-bucket", "[ExecutionRoleNames]", "slipway-execution-*", "[Uploads]", "uploads-bucket",
	"[Uploads.Arn]", "arn:aws:s3:::uploads-bucket", "[RunLog]", "run-log", "[RunLog.Arn]", "arn:aws:dynamodb:us-east-1:210987654321:table/run-log",
	"[Vault.Arn]", "arn:aws:kms:us-east-1:210987654321:key/vault", "[RunMachine.Arn]", "arn:aws:states:us-east-1:210987654321:stateMachine:slipway-run",
	"[Undelivered.Arn]", "arn:aws:sqs:us-east-1:210987654321:undelivered", "[UploadsKeyArn]", "arn:aws:kms:us-east-1:210987654321:key/uploads",
	"[StateBucketKeyArn]", "arn:aws:kms:us-east-1:210987654321:key/state", "[TableKeyArn]", "arn:aws:kms:us-east-1:210987654321:key/table",
)

// policiesOf are the synthesized policies of a principal of the recording, with the recording's values in them.
func policiesOf(t *testing.T, f templateFile, principal string) iampolicy.Document {
	t.Helper()
	var statements []any
	if principal != "caller" {
		statements = f.statements(strings.ToUpper(principal[:1]) + principal[1:] + "Role")
	} else {
		for _, s := range at(f.Resources["CallerPolicy"].Properties, "PolicyDocument.Statement").([]any) {
			if chosen, ok := at(s, "Fn::If").([]any); ok {
				s = chosen[1]
			}
			statements = append(statements, s)
		}
	}
	d, err := iampolicy.Parse([]byte(installed.Replace(text(map[string]any{"Version": iampolicy.Version, "Statement": resolved(statements)}))))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// recorded reads the recording, and those that SLIPWAY_CALLS names: more files of the same form, by a pattern.
func recorded(t *testing.T) []calls.Recorded {
	t.Helper()
	files := []string{"testdata/calls.jsonl"}
	if pattern := os.Getenv("SLIPWAY_CALLS"); pattern != "" {
		more, err := filepath.Glob(pattern)
		if err != nil || len(more) == 0 {
			t.Fatalf("SLIPWAY_CALLS names no file: %v", err)
		}
		files = append(files, more...)
	}
	var readers []io.Reader
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		readers = append(readers, f)
	}
	out, err := calls.Read(readers...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var principals = []string{"planner", "provisioner", "publisher", "janitor", "trigger", "caller"}

func TestEveryRecordedCallIsAllowed(t *testing.T) {
	f := readTemplate(t)
	policies := map[string]iampolicy.Document{}
	made := map[string]int{}
	for _, p := range principals {
		policies[p] = policiesOf(t, f, p)
	}
	for _, c := range recorded(t) {
		made[c.Principal]++
		// What the recording can't know is who the caller is, which S3 and KMS compare.
		call := c.Call
		call.Context = map[string][]string{"aws:userid": {"AROACALLER:ann"}, "aws:SecureTransport": {"true"}}
		for k, v := range c.Context {
			call.Context[k] = v
		}
		d, err := iampolicy.Evaluate(call, policies[c.Principal])
		if err != nil {
			t.Fatal(err)
		}
		tolerated := slices.ContainsFunc(refused, func(r struct{ principal, action, resource, why string }) bool {
			return r.principal == c.Principal && r.action == c.Action && r.resource == c.Resource
		})
		if d.Allowed == tolerated {
			t.Errorf("that %s may %s on %s %v is %t, and it does", c.Principal, c.Action, c.Resource, c.Context, d.Allowed)
		}
	}
	for _, p := range principals {
		if made[p] == 0 {
			t.Errorf("the recording has no call of %s", p)
		}
	}
}

// unrecorded are actions that are allowed and not in the recording, each with who else makes the call or when. The
// principal "*" is every function.
var unrecorded = []struct{ principal, action, resource, why string }{
	{"*", "logs:CreateLogStream", "*", "Lambda writes the function's log"},
	{"*", "logs:PutLogEvents", "*", "Lambda writes the function's log"},
	{"*", "xray:PutTraceSegments", "*", "Lambda writes the function's traces"},
	{"*", "xray:PutTelemetryRecords", "*", "Lambda writes the function's traces"},
	{"*", "ec2:*", "*", "Lambda makes the network interfaces of functions in a VPC; the functions' own code is denied it"},
	{"*", "kms:*", "*:key/state", "S3 asks for the use of a key of the team's own, on behalf of the function"},
	{"*", "kms:*", "*:key/table", "DynamoDB asks for the use of a key of the team's own, on behalf of the function"},
	{"*", "kms:*", "*:key/uploads", "S3 asks for the use of a key of the team's own, on behalf of the function"},
	{"janitor", "sqs:SendMessage", "*", "Lambda sends what the function was told and could not do"},
	{"trigger", "sqs:SendMessage", "*", "Lambda sends what the function was told and could not do"},
	{"planner", "cloudformation:UpdateResource", "*", "settles a dead run in the midst of a change; the recording has one in the midst of a creation"},
	{"planner", "cloudformation:DeleteResource", "*", "settles a dead run in the midst of a deletion, or takes away what a creation has left"},
	{"janitor", "cloudformation:UpdateResource", "*", "as the planner"},
	{"janitor", "cloudformation:DeleteResource", "*", "as the planner"},
	{"janitor", "kms:*", "*:key/vault", "settles a dead run of a stack that has NoEcho values"},
	{"janitor", "s3:DeleteObject", "*/slipway/*", "sweeps the vaults, and the places in the line, that closed runs have left"},
	{"provisioner", "s3:DeleteObject", "*/slipway/runs/*", "takes back what was too large for the table, when its item is refused"},
	{"provisioner", "s3:ListBucket", "*", "looks for the response of a custom resource's handler until it is there"},
	{"publisher", "s3:ListBucket", "arn:aws:s3:::uploads-bucket", "tells an upload that has expired in the midst of a run from a failure"},
	{"caller", "s3:AbortMultipartUpload", "*", "gives up the upload of a large archive"},
	{"caller", "s3:ListMultipartUploadParts", "*", "goes on with the upload of a large archive"},
}

// refused are calls that were recorded and are not allowed, with what comes of it.
var refused = []struct{ principal, action, resource, why string }{
	{"caller", "s3:ListBucket", "arn:aws:s3:::uploads-bucket", "S3 says 403 of an object that is absent in place of 404, and the caller takes the one for the other"},
}

func TestNothingIsAllowedThatNobodyNeeds(t *testing.T) {
	f := readTemplate(t)
	made := recorded(t)
	excused := map[int]bool{}
	for _, p := range principals {
		for _, s := range policiesOf(t, f, p).Statement {
			if s.Effect != "Allow" {
				continue
			}
			for _, action := range s.Action {
				for _, resource := range s.Resource {
					one := iampolicy.Statement{Effect: "Allow", Action: []string{action}, Resource: []string{resource}, Condition: s.Condition}
					if used(t, one, p, made) {
						continue
					}
					found := false
					for i, u := range unrecorded {
						if (u.principal == p || u.principal == "*") && iampolicy.Matches(u.action, action) && iampolicy.Matches(u.resource, resource) {
							found, excused[i] = true, true
						}
					}
					if !found {
						t.Errorf("%s may %s on %s (%s), and no run does", p, action, resource, s.Sid)
					}
				}
			}
		}
	}
	for i, u := range unrecorded {
		if !excused[i] {
			t.Errorf("%s of %s on %s is excused for nothing", u.action, u.principal, u.resource)
		}
	}
}

// used reports whether one action on one resource of a statement allows a call that was recorded.
func used(t *testing.T, one iampolicy.Statement, principal string, made []calls.Recorded) bool {
	t.Helper()
	for _, c := range made {
		if c.Principal != principal {
			continue
		}
		call := c.Call
		call.Context = map[string][]string{"aws:userid": {"AROACALLER:ann"}}
		for k, v := range c.Context {
			call.Context[k] = v
		}
		applies, err := one.Applies(call)
		if err != nil {
			t.Fatal(err)
		}
		if applies {
			return true
		}
	}
	return false
}

// everything are the actions that are allowed on "*", each with AWS's word that there is nothing narrower. docs/permissions.md
// has the same table.
var everything = map[string]string{
	"xray:":                                   "https://docs.aws.amazon.com/service-authorization/latest/reference/list_awsx-ray.html",
	"logs:":                                   "https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html",
	"ec2:DescribeAvailabilityZones":           "https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html",
	"ec2:":                                    "https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html",
	"cloudformation:CreateResource":           "https://docs.aws.amazon.com/service-authorization/latest/reference/list_awscloudformation.html",
	"cloudformation:UpdateResource":           "https://docs.aws.amazon.com/service-authorization/latest/reference/list_awscloudformation.html",
	"cloudformation:DeleteResource":           "https://docs.aws.amazon.com/service-authorization/latest/reference/list_awscloudformation.html",
	"cloudformation:GetResource":              "https://docs.aws.amazon.com/service-authorization/latest/reference/list_awscloudformation.html",
	"cloudformation:GetResourceRequestStatus": "https://docs.aws.amazon.com/service-authorization/latest/reference/list_awscloudformation.html",
}

func TestWhatIsForEverythingHasNothingNarrower(t *testing.T) {
	f := readTemplate(t)
	docs, err := os.ReadFile("../docs/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for id := range f.of(t, "AWS::IAM::Role", 9) {
		for _, s := range f.statements(id) {
			for _, a := range at(s, "Action").([]any) {
				for _, on := range at(s, "Resource").([]any) {
					if on != "*" {
						continue
					}
					action := a.(string)
					service, _, _ := strings.Cut(action, ":")
					source, ok := everything[action]
					if !ok {
						source, ok = everything[service+":"]
					}
					if !ok || !strings.Contains(string(docs), source) {
						t.Errorf("%s: %s is allowed on everything, and docs/permissions.md does not say why", id, action)
					}
					if !strings.Contains(string(docs), "`"+action+"`") {
						t.Errorf("docs/permissions.md does not name %s", action)
					}
					seen[action] = true
				}
			}
		}
	}
	if len(seen) == 0 {
		t.Error("nothing is allowed on everything: the table is of no use")
	}
}
