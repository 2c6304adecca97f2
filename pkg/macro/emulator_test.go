//go:build emulators

package macro_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/emulators"
	"github.com/slipway-cdk/slipway/pkg/macro"
	"github.com/slipway-cdk/slipway/pkg/objectstore/s3"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// emulated is CloudFormation and S3 of an emulator.
type emulated struct {
	client   *cloudformation.Client
	s3       *sdk.Client
	bucket   string
	expander *macro.Expander
	// ids makes every expansion another one.
	ids int
}

func newEmulated(t *testing.T) *emulated {
	t.Helper()
	cfg := emulators.Config(t)
	em := &emulated{client: cloudformation.NewFromConfig(cfg), s3: s3.NewClient(cfg, ""), bucket: fmt.Sprintf("slipway-macros-%d", time.Now().UnixNano())}
	if _, err := em.s3.CreateBucket(t.Context(), &sdk.CreateBucketInput{Bucket: &em.bucket}); err != nil {
		t.Fatal(err)
	}
	em.expander = &macro.Expander{CloudFormation: em.client, Templates: macro.Bucket{Client: em.s3, Name: em.bucket}, Clock: clock.Real{}}
	return em
}

func (em *emulated) handle() macro.Handle {
	em.ids++
	return macro.NewHandle(fmt.Sprint(em.bucket, em.ids), 1, time.Now())
}

func (em *emulated) put(ctx context.Context, key, body string) error {
	_, err := em.s3.PutObject(ctx, &sdk.PutObjectInput{Bucket: &em.bucket, Key: &key, Body: bytes.NewReader([]byte(body))})
	return err
}

// expand carries an expansion to its end, as a run does.
func (em *emulated) expand(ctx context.Context, body string, h macro.Handle) (string, error) {
	req := macro.Request{Stack: "Shop", Body: []byte(body), Key: "slipway/templates/x.json"}
	if err := em.put(ctx, req.Key, body); err != nil {
		return "", err
	}
	p, err := em.expander.Start(ctx, req, h)
	for range 100 {
		if err != nil || p.Status == macro.Done {
			break
		}
		if err := em.expander.Clock.Sleep(ctx, min(p.Wait, 200*time.Millisecond)); err != nil {
			return "", err
		}
		p, err = em.expander.Poll(ctx, req, h)
	}
	if err != nil {
		return "", err
	}
	return string(p.Body), em.expander.Discard(ctx, h)
}

// standing lists the transient stacks of these names that have not been deleted.
func (em *emulated) standing(ctx context.Context, h macro.Handle) (n int, err error) {
	out, err := em.client.ListStacks(ctx, &cloudformation.ListStacksInput{})
	if err != nil {
		return 0, err
	}
	for _, s := range out.StackSummaries {
		if aws.ToString(s.StackName) == h.StackName && s.StackStatus != types.StackStatusDeleteComplete {
			n++
		}
	}
	return n, nil
}

const (
	included = `{"Resources": {"Q": {"Type": "AWS::SQS::Queue", "Properties": {"Fn::Transform": {"Name": "AWS::Include", "Parameters": {"Location": "s3://%s/snippet.json"}}}}}}`
	snippet  = `{"VisibilityTimeout": 77}`
	function = `{"Transform": "AWS::Serverless-2016-10-31", "Resources": {"F": {"Type": "AWS::Serverless::Function", "Properties": {"Runtime": "nodejs22.x", "Handler": "index.handler", "InlineCode": "exports.handler = async () => {}"}}}}`
	without  = `{"Resources": {"Q": {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": 5}}}}`
)

func (em *emulated) include(ctx context.Context) (string, error) {
	return fmt.Sprintf(included, em.bucket), em.put(ctx, "snippet.json", snippet)
}

// registers tries to make a macro of the account's own.
func (em *emulated) registers(ctx context.Context) (string, error) {
	name := em.bucket
	_, err := em.client.CreateStack(ctx, &cloudformation.CreateStackInput{
		StackName: &name, TemplateBody: aws.String(`{"Resources": {"M": {"Type": "AWS::CloudFormation::Macro", "Properties": {"Name": "Own", "FunctionName": "own"}}}}`),
	})
	var made bool
	for range 50 {
		if err != nil || made {
			break
		}
		out, err := em.client.DescribeStackResources(ctx, &cloudformation.DescribeStackResourcesInput{StackName: &name})
		made = err == nil && slices.ContainsFunc(out.StackResources, func(r types.StackResource) bool {
			return aws.ToString(r.LogicalResourceId) == "M" && r.ResourceStatus == types.ResourceStatusCreateComplete
		})
		if err := em.expander.Clock.Sleep(ctx, 20*time.Millisecond); err != nil {
			return "", err
		}
	}
	_, err = em.client.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: &name})
	return emulators.Unless(made, "no"), err
}

func (em *emulated) capabilities() []emulators.Capability {
	// processed tries a template with a macro; what has become of it, or the refusal, is what was seen.
	processed := func(ctx context.Context, body string) (string, error) {
		h := em.handle()
		got, err := em.expand(ctx, body, h)
		if err != nil {
			got = "no: " + err.Error()
		}
		return got, em.expander.Discard(ctx, h)
	}
	runs := func(name, makes string, template func(context.Context) (string, error), cases ...string) emulators.Capability {
		return emulators.Capability{Name: "CloudFormation: a change set runs " + name, Cases: cases, Probe: func(ctx context.Context) (string, error) {
			body, err := template(ctx)
			if err != nil {
				return "", err
			}
			got, err := processed(ctx, body)
			return emulators.Unless(strings.Contains(got, makes), "no"), err
		}}
	}
	constant := func(body string) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return body, nil }
	}
	return []emulators.Capability{
		runs("AWS::Include", "77", em.include, "a snippet is included", "a large template is read under its address"),
		runs("AWS::Serverless", "AWS::Lambda::Function", constant(function), "a serverless function becomes plain resources"),
		{Name: "CloudFormation: AWS::CloudFormation::Macro makes a macro", Probe: em.registers},
		{
			Name: "CloudFormation: GetTemplate reads what a change set was made from", Cases: []string{"a template without macros is read back"},
			Probe: func(ctx context.Context) (string, error) {
				got, err := processed(ctx, without)
				return emulators.Unless(strings.Contains(got, "VisibilityTimeout"), "no: that of the stack, which has none"), err
			},
		},
		{
			Name: "CloudFormation: a change set's name is taken once", Cases: []string{"a repeated start makes nothing more"},
			Probe: func(ctx context.Context) (string, error) {
				h := em.handle()
				for range 2 {
					_, _ = em.client.CreateChangeSet(ctx, &cloudformation.CreateChangeSetInput{
						StackName: &h.StackName, ChangeSetName: aws.String("expand"), ChangeSetType: types.ChangeSetTypeCreate, TemplateBody: aws.String(without),
					})
				}
				n, err := em.standing(ctx, h)
				for range n {
					_ = em.expander.Discard(ctx, h)
				}
				return emulators.Unless(n == 1, fmt.Sprintf("no: a second one makes %d stacks of one name", n)), err
			},
		},
	}
}

func TestMacrosRunOnAnEmulator(t *testing.T) {
	em := newEmulated(t)
	leaveOut := emulators.LeaveOut(t, em.capabilities())
	properties := func(t *testing.T, body string) map[string]any {
		t.Helper()
		var doc struct {
			Resources map[string]struct {
				Type       string
				Properties map[string]any
			}
		}
		if err := json.Unmarshal([]byte(body), &doc); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		return doc.Resources["Q"].Properties
	}
	run := func(t *testing.T, body string) string {
		t.Helper()
		h := em.handle()
		got, err := em.expand(t.Context(), body, h)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := em.standing(t.Context(), h); err != nil || n != 0 {
			t.Errorf("%d stacks are left: %v", n, err)
		}
		return got
	}
	t.Run("a snippet is included", func(t *testing.T) {
		leaveOut(t)
		body, err := em.include(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := properties(t, run(t, body)); fmt.Sprint(got["VisibilityTimeout"]) != "77" {
			t.Errorf("the queue has %v", got)
		}
	})
	t.Run("a large template is read under its address", func(t *testing.T) {
		leaveOut(t)
		body, err := em.include(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		body = strings.Replace(body, "{", `{"Metadata": {"Long": "`+strings.Repeat("x", macro.MaxInline)+`"}, `, 1)
		if got := properties(t, run(t, body)); fmt.Sprint(got["VisibilityTimeout"]) != "77" {
			t.Errorf("the queue has %v", got)
		}
	})
	t.Run("a serverless function becomes plain resources", func(t *testing.T) {
		leaveOut(t)
		got, err := template.Parse([]byte(run(t, function)))
		if err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, r := range got.Resources {
			kinds = append(kinds, r.Type)
		}
		slices.Sort(kinds)
		if want := []string{"AWS::IAM::Role", "AWS::Lambda::Function"}; !slices.Equal(kinds, want) {
			t.Errorf("it has %v, want %v", kinds, want)
		}
		if ds := template.Validate(got); ds.HasErrors() {
			t.Error(ds)
		}
	})
	t.Run("a template without macros is read back", func(t *testing.T) {
		leaveOut(t)
		if got := properties(t, run(t, without)); fmt.Sprint(got["VisibilityTimeout"]) != "5" {
			t.Errorf("the queue has %v", got)
		}
	})
	t.Run("a repeated start makes nothing more", func(t *testing.T) {
		leaveOut(t)
		h := em.handle()
		for range 2 {
			if _, err := em.expander.Start(t.Context(), macro.Request{Stack: "Shop", Body: []byte(without)}, h); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := em.standing(t.Context(), h); err != nil || n != 1 {
			t.Errorf("%d stacks were made: %v", n, err)
		}
		if err := em.expander.Discard(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("what does not exist is absent, and deleted", func(t *testing.T) {
		leaveOut(t)
		h := em.handle()
		req := macro.Request{Stack: "Shop", Body: []byte(without)}
		look := func() {
			t.Helper()
			if p, err := em.expander.Poll(t.Context(), req, h); err != nil || p.Status != macro.Absent {
				t.Errorf("got %+v, %v", p, err)
			}
		}
		look()
		if err := em.expander.Discard(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		if _, err := em.expander.Start(t.Context(), req, h); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := em.expander.Discard(t.Context(), h); err != nil {
				t.Fatal(err)
			}
		}
		look()
	})
}
