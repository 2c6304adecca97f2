package macro_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/macro"
	"github.com/slipway-cdk/slipway/pkg/template"
)

const (
	serverless = `{"Transform": "AWS::Serverless-2016-10-31", "Globals": {"Function": {}}, "Resources": {"F": {"Type": "AWS::Serverless::Function"}}}`
	plain      = `{"Resources":{"F":{"Type":"AWS::Lambda::Function"}}}`
)

func request(body string) macro.Request {
	return macro.Request{Stack: "Shop", Body: []byte(body), Key: "slipway/templates/x.json"}
}

func TestAMacroIsExpandedThroughATransientChangeSet(t *testing.T) {
	b := newBench(plain)
	body, err := b.expand(context.Background(), request(serverless))
	if err != nil {
		t.Fatal(err)
	}
	if string(body) != plain {
		t.Fatalf("got %s", body)
	}
	in := b.service.Created()[0]
	if got := aws.ToString(in.StackName); !regexp.MustCompile("^cdkd-macro-expand-[0-9a-f]{16}$").MatchString(got) {
		t.Errorf("the stack is called %s", got)
	}
	if in.ChangeSetType != types.ChangeSetTypeCreate || aws.ToString(in.TemplateBody) != serverless || in.TemplateURL != nil || !aws.ToBool(in.DisableValidation) {
		t.Errorf("the change set is %+v", in)
	}
	want := []types.Capability{types.CapabilityCapabilityAutoExpand, types.CapabilityCapabilityIam, types.CapabilityCapabilityNamedIam}
	if diff := cmp.Diff(want, in.Capabilities); diff != "" {
		t.Error(diff)
	}
	b.clean(t)
}

func TestTheSizeDecidesTheWay(t *testing.T) {
	sized := func(n int) string {
		head, tail := `{"Transform": "M", "Description": "`, `", "Resources": {}}`
		return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
	}
	t.Run("51,200 bytes go inline", func(t *testing.T) {
		b := newBench(plain)
		if _, err := b.expand(context.Background(), request(sized(51_200))); err != nil {
			t.Fatal(err)
		}
		if in := b.service.Created()[0]; in.TemplateURL != nil || len(aws.ToString(in.TemplateBody)) != 51_200 {
			t.Error("it was uploaded")
		}
	})
	t.Run("more go through the bucket", func(t *testing.T) {
		b := newBench(plain)
		if _, err := b.expand(context.Background(), request(sized(51_201))); err != nil {
			t.Fatal(err)
		}
		if in := b.service.Created()[0]; in.TemplateBody != nil || aws.ToString(in.TemplateURL) != "https://bucket.example/slipway/templates/x.json?signature" {
			t.Errorf("it was sent as %+v", in)
		}
		b.clean(t)
	})
	t.Run("more are refused where there is no bucket", func(t *testing.T) {
		b := newBench(plain)
		b.expander.Templates = nil
		wantProblem(t, b, sized(51_201), "the template is too large for its macros")
	})
	t.Run("1 MiB is the end", func(t *testing.T) {
		b := newBench(plain)
		if _, err := b.expand(context.Background(), request(sized(1<<20))); err != nil {
			t.Fatal(err)
		}
		wantProblem(t, newBench(plain), sized(1<<20+1), "the template is too large for its macros: it has 1048577 bytes, and CloudFormation reads 1048576")
	})
	t.Run("a bucket that fails is told", func(t *testing.T) {
		b := newBench(plain)
		b.templates.err = errors.New("no such bucket")
		if _, err := b.expand(context.Background(), request(sized(60_000))); !errors.Is(err, b.templates.err) {
			t.Errorf("the problem is %v", err)
		}
	})
	t.Run("an address is not told to anybody", func(t *testing.T) {
		b := newBench(plain)
		b.fail = func(call string, _ int) error {
			if call != "create change set" {
				return nil
			}
			return &smithy.GenericAPIError{Code: "ValidationError", Message: "Value 'https://bucket.example/slipway/templates/x.json?signature' at 'templateURL'"}
		}
		_, err := b.expand(context.Background(), request(sized(60_000)))
		if err == nil || strings.Contains(err.Error(), "signature") || !strings.Contains(err.Error(), "Value 'slipway/templates/x.json' at") {
			t.Errorf("the problem is %v", err)
		}
	})
}

// wantProblem expands a template, which has to fail with the problem and leave nothing.
func wantProblem(t *testing.T, b *bench, body, problem string) {
	t.Helper()
	_, err := b.expand(context.Background(), request(body))
	if err == nil || !strings.Contains(err.Error(), problem) {
		t.Fatalf("the problem is %v\nwant %q", err, problem)
	}
	for _, d := range diag.From(err) {
		if d.Severity == diag.Error && d.Stack != "Shop" {
			t.Errorf("the problem does not name the stack: %v", d)
		}
	}
	b.clean(t)
}

func TestWhatMacrosDoWrong(t *testing.T) {
	t.Run("a macro that fails", func(t *testing.T) {
		b := newBench(plain)
		b.reasons = []string{"Transform 12345::M failed with: boom\x1b[31m"}
		wantProblem(t, b, serverless, "the macros have failed: Transform 12345::M failed with: boom [31m")
	})
	t.Run("a result that needs macros", func(t *testing.T) {
		wantProblem(t, newBench(`{"Transform": "Other", "Resources": {}}`), serverless, "the expanded template still needs the macro Other: at Transform")
		wantProblem(t, newBench(`{"Resources": {"R": {"Type": "T", "Properties": {"Fn::Transform": {"Name": "Deep"}}}}}`), serverless, "the expanded template still needs the macro Deep: at Resources.R.Properties.Fn::Transform")
	})
	t.Run("a result that is not JSON", func(t *testing.T) {
		wantProblem(t, newBench("Resources:\n  R: {}"), serverless, "the expanded template is not JSON")
	})
	t.Run("a macro that never ends", func(t *testing.T) {
		b := newBench(plain)
		b.service.Polls = -1
		began := b.clock.Now()
		wantProblem(t, b, serverless, "the macros take too long: they have not ended within 10m0s")
		if took := b.clock.Now().Sub(began); took < 10*time.Minute || took > 11*time.Minute {
			t.Errorf("it waited %s", took)
		}
	})
}

func TestEarlyValidationIsTriedAgainThreeTimes(t *testing.T) {
	const rejection = "The following hook(s)/validation failed: [AWS::EarlyValidation::ResourceExistenceCheck]."
	b := newBench(plain)
	b.reasons = []string{rejection, rejection, rejection, ""}
	if _, err := b.expand(context.Background(), request(serverless)); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, in := range b.service.Created() {
		names[aws.ToString(in.StackName)] = true
	}
	if len(names) != 4 {
		t.Errorf("%d stacks were made, want 4 of different names", len(names))
	}
	b.clean(t)

	b = newBench(plain)
	b.reasons = []string{rejection, rejection, rejection, rejection, ""}
	wantProblem(t, b, serverless, "the macros have failed: The following hook(s)/validation failed")
	if len(b.service.Created()) != 4 {
		t.Errorf("it was tried %d times", len(b.service.Created()))
	}
}

func TestErrorsOfTheServiceEndTheExpansionAndLeaveNothing(t *testing.T) {
	for _, call := range []string{"create change set", "describe change set", "get template"} {
		t.Run(call, func(t *testing.T) {
			b := newBench(plain)
			b.fail = func(c string, _ int) error {
				if c == call {
					return apiError("AccessDenied")
				}
				return nil
			}
			wantProblem(t, b, serverless, "api error AccessDenied: as told")
			_, err := b.expand(context.Background(), request(serverless))
			if next := diag.From(err)[0].Next; !strings.Contains(next, "cloudformation:CreateChangeSet") {
				t.Errorf("what to do is %q", next)
			}
			b.expander.Denied = "Ask somebody."
			_, err = b.expand(context.Background(), request(serverless))
			if next := diag.From(err)[0].Next; next != "Ask somebody." {
				t.Errorf("what to do is %q", next)
			}
		})
	}
}

func TestThrottledPollsGoOn(t *testing.T) {
	b := newBench(plain)
	b.fail = func(call string, n int) error {
		if (call == "create change set" || call == "describe change set" || call == "get template") && n < 3 {
			return apiError("Throttling")
		}
		return nil
	}
	if body, err := b.expand(context.Background(), request(serverless)); err != nil || string(body) != plain {
		t.Fatalf("got %s, %v", body, err)
	}
	b.clean(t)
}

func TestAStackThatCanNotBeDeletedIsNamed(t *testing.T) {
	b := newBench(plain)
	b.fail = func(call string, _ int) error { return apiError("AccessDenied") }
	h := macro.NewHandle("id", 1, b.clock.Now())
	err := b.expander.Discard(context.Background(), h)
	if err == nil {
		t.Fatal("it was deleted")
	}
	d := macro.Left("Shop", h, err)
	if d.Severity != diag.Warning || d.Stack != "Shop" || d.Summary != "the stack "+h.StackName+" is left over from running macros" || !strings.Contains(d.Detail, "AccessDenied") {
		t.Errorf("the warning is %+v", d)
	}
}

func TestAnEndedContextIsNoEndOfTheExpansion(t *testing.T) {
	for _, call := range []string{"create change set", "describe change set", "get template"} {
		b := newBench(plain)
		ctx, cancel := context.WithCancel(context.Background())
		b.fail = func(c string, _ int) error {
			if c == call {
				cancel()
				return ctx.Err()
			}
			return nil
		}
		_, err := b.expand(ctx, request(serverless))
		if !errors.Is(err, context.Canceled) || errors.As(err, new(diag.Diagnostics)) {
			t.Errorf("%s: the problem is %v", call, err)
		}
		b.clean(t) // also with that context
	}
}

func TestAnAnswerThatIsLostIsLookedFor(t *testing.T) {
	b := newBench(plain)
	b.service.Around = func(_ context.Context, call string, do func() error) error {
		b.calls[call]++
		if err := do(); err != nil || b.calls[call] > 1 || call == "delete stack" {
			return err
		}
		return errors.New("the connection broke")
	}
	if body, err := b.expand(context.Background(), request(serverless)); err != nil || string(body) != plain {
		t.Fatalf("got %s, %v", body, err)
	}
	if n := len(b.service.Created()); n != 1 {
		t.Errorf("%d change sets were made", n)
	}
	b.clean(t)
}

func TestAnExpansionIsGoneOnWithByAnotherProcess(t *testing.T) {
	b := newBench(plain)
	data, err := json.Marshal(macro.NewHandle("id", 1, b.clock.Now()))
	if err != nil {
		t.Fatal(err)
	}
	stored := func() (h macro.Handle) {
		if err := json.Unmarshal(data, &h); err != nil {
			t.Fatal(err)
		}
		return h
	}
	ctx := context.Background()
	if p, err := b.expander.Poll(ctx, request(serverless), stored()); err != nil || p.Status != macro.Absent {
		t.Fatalf("before it was started: %+v, %v", p, err)
	}
	for range 2 { // the second time it finds what the first has made
		if p, err := b.expander.Start(ctx, request(serverless), stored()); err != nil || p.Status != macro.Running || p.Wait <= 0 {
			t.Fatalf("got %+v, %v", p, err)
		}
	}
	for range 10 {
		p, err := b.expander.Poll(ctx, request(serverless), stored())
		if err != nil {
			t.Fatal(err)
		}
		if p.Status == macro.Done {
			if string(p.Body) != plain || len(b.service.Created()) != 1 {
				t.Fatalf("got %s of %d change sets", p.Body, len(b.service.Created()))
			}
			for range 2 {
				if err := b.expander.Discard(ctx, stored()); err != nil {
					t.Fatal(err)
				}
			}
			b.clean(t)
			return
		}
	}
	t.Fatal("it is never done")
}

func TestEveryExpansionHasItsOwnStack(t *testing.T) {
	now := time.Now()
	names := map[string]bool{}
	for _, h := range []macro.Handle{macro.NewHandle("a", 1, now), macro.NewHandle("a", 2, now), macro.NewHandle("b", 1, now), macro.NewHandle("1:a", 1, now)} {
		names[h.StackName] = true
	}
	if len(names) != 4 || !names[macro.NewHandle("a", 1, now.Add(time.Hour)).StackName] {
		t.Errorf("the names are %v", names)
	}
}

func TestAHandleOfAnotherVersionIsRefused(t *testing.T) {
	if _, err := newBench(plain).expander.Poll(context.Background(), request(serverless), macro.Handle{Version: 9}); err == nil {
		t.Fatal("it is taken")
	}
}

func TestParametersOfTheChangeSet(t *testing.T) {
	declared := func(s string) string {
		return `{"Transform": "M", "Parameters": {` + s + `}, "Resources": {}}`
	}
	cases := []struct {
		name, parameters string
		supplied         map[string]string
		want             []string
		fails            string
	}{
		{"a supplied value is sent", `"P": {"Type": "String"}`, map[string]string{"P": "mine"}, []string{"P=mine"}, ""},
		{"a Default is left to CloudFormation", `"P": {"Type": "String", "Default": "d"}`, nil, nil, ""},
		{"a value goes before the Default", `"P": {"Type": "String", "Default": "d"}`, map[string]string{"P": "mine"}, []string{"P=mine"}, ""},
		{"a missing value gets a placeholder", `"P": {"Type": "String"}`, nil, []string{"P=placeholder"}, ""},
		{"a secret is never sent", `"P": {"Type": "String", "NoEcho": true}`, map[string]string{"P": "hush"}, []string{"P=placeholder"}, ""},
		{"a number", `"P": {"Type": "Number", "MinValue": 5, "MaxValue": 9}`, nil, []string{"P=5"}, ""},
		{"a list of numbers", `"P": {"Type": "List<Number>"}`, nil, []string{"P=1"}, ""},
		{"an allowed value", `"P": {"Type": "String", "AllowedValues": ["a", "b"]}`, nil, []string{"P=a"}, ""},
		{"an allowed number", `"P": {"Type": "Number", "AllowedValues": [8, 9]}`, nil, []string{"P=8"}, ""},
		{"a minimal length", `"P": {"Type": "String", "MinLength": 20}`, nil, []string{"P=" + strings.Repeat("x", 20)}, ""},
		{"a maximal length", `"P": {"Type": "String", "MaxLength": 3}`, nil, []string{"P=xxx"}, ""},
		{"an AWS type", `"P": {"Type": "AWS::EC2::VPC::Id"}`, nil, []string{"P=vpc-00000000000000000"}, ""},
		{"a list of an AWS type", `"P": {"Type": "List<AWS::EC2::Subnet::Id>"}`, nil, []string{"P=subnet-00000000000000000"}, ""},
		{"a pattern that a usual value matches", `"P": {"Type": "String", "AllowedPattern": "[0-9./]+"}`, nil, []string{"P=1"}, ""},
		{"a pattern that none matches", `"P": {"Type": "String", "AllowedPattern": "z{40}"}`, nil, nil, "Parameters.P: parameter P needs a value before the macros can run"},
		{"the name of an SSM parameter", `"P": {"Type": "AWS::SSM::Parameter::Value<String>"}`, nil, nil, "parameter P needs a value before the macros can run"},
		{"sorted by name", `"Z": {"Type": "String"}, "A": {"Type": "String"}`, nil, []string{"A=placeholder", "Z=placeholder"}, ""},
		{"an undeclared value is not sent", `"P": {"Type": "String"}`, map[string]string{"Q": "x"}, []string{"P=placeholder"}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(plain)
			req := request(declared(c.parameters))
			req.Parameters = c.supplied
			_, err := b.expand(context.Background(), req)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("the problem is %v, want %q", err, c.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range b.service.Created()[0].Parameters {
				got = append(got, fmt.Sprintf("%s=%s", aws.ToString(p.ParameterKey), aws.ToString(p.ParameterValue)))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAKeptValueCountsWhereTheDeclarationAllowsIt(t *testing.T) {
	for _, c := range []struct{ name, declaration, supplied, want string }{
		{"a kept value", `"Type": "String", "Default": "d"`, "", "kept"},
		{"a supplied value goes before it", `"Type": "String"`, "mine", "mine"},
		{"the declaration is another now", `"Type": "String", "AllowedValues": ["a"]`, "", "a"},
		{"the name of an SSM parameter", `"Type": "AWS::SSM::Parameter::Value<String>"`, "", "kept"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(plain)
			req := request(`{"Transform": "M", "Parameters": {"P": {` + c.declaration + `}}, "Resources": {}}`)
			req.Kept = map[string]string{"P": "kept", "Gone": "x"}
			if c.supplied != "" {
				req.Parameters = map[string]string{"P": c.supplied}
			}
			if _, err := b.expand(context.Background(), req); err != nil {
				t.Fatal(err)
			}
			got := b.service.Created()[0].Parameters
			if len(got) != 1 || aws.ToString(got[0].ParameterValue) != c.want {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestTheRefusalNamesMacroStackAndWhatToDo(t *testing.T) {
	uses, err := template.FindMacros([]byte(`{"Transform": ["AWS::Serverless-2016-10-31", "Mine"], "Resources": {"R": {"Type": "T", "Properties": {"Fn::Transform": [{"Name": "AWS::Include"}, {"Name": "Mine"}]}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	ds := macro.Refuse("Shop", uses)
	if len(ds) != 3 {
		t.Fatalf("got %v", ds)
	}
	for i, name := range []string{"AWS::Serverless-2016-10-31", "Mine", "AWS::Include"} {
		d := ds[i]
		if d.Severity != diag.Error || d.Stack != "Shop" || d.Path == "" || d.Next == "" || d.Summary != "the template of stack Shop needs the macro "+name {
			t.Errorf("got %+v", d)
		}
	}
}
