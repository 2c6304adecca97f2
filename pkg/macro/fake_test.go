package macro_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/smithy-go"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/macro"
)

// service is CloudFormation as far as macros are concerned. Every stack that is made has to be deleted.
type service struct {
	mu      sync.Mutex
	stacks  map[string]*cloudformation.CreateChangeSetInput
	created []*cloudformation.CreateChangeSetInput
	// polls is how many times a change set is in progress before it ends; endless is never.
	polls   int
	endless bool
	seen    map[string]int
	// reasons are why the change sets fail, one per attempt; "" is success.
	reasons []string
	// processed is the result.
	processed string
	// fail gives the error of a call, by its name and how often it was called before.
	fail  func(call string, n int) error
	calls map[string]int
}

func newService(processed string) *service {
	return &service{stacks: map[string]*cloudformation.CreateChangeSetInput{}, seen: map[string]int{}, calls: map[string]int{}, polls: 2, processed: processed}
}

func (s *service) called(ctx context.Context, call string) error {
	n := s.calls[call]
	s.calls[call]++
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.fail != nil {
		return s.fail(call, n)
	}
	return nil
}

func (s *service) CreateChangeSet(ctx context.Context, in *cloudformation.CreateChangeSetInput, _ ...func(*cloudformation.Options)) (*cloudformation.CreateChangeSetOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := aws.ToString(in.StackName)
	s.created = append(s.created, in)
	s.stacks["arn:aws:cloudformation:eu-west-1:1:stack/"+name+"/1"] = in
	if err := s.called(ctx, "CreateChangeSet"); err != nil {
		return nil, err
	}
	return &cloudformation.CreateChangeSetOutput{
		Id: aws.String("arn:aws:cloudformation:eu-west-1:1:changeSet/expand/" + name), StackId: aws.String("arn:aws:cloudformation:eu-west-1:1:stack/" + name + "/1"),
	}, nil
}

func (s *service) DescribeChangeSet(ctx context.Context, in *cloudformation.DescribeChangeSetInput, _ ...func(*cloudformation.Options)) (*cloudformation.DescribeChangeSetOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.called(ctx, "DescribeChangeSet"); err != nil {
		return nil, err
	}
	id := aws.ToString(in.ChangeSetName)
	s.seen[id]++
	if s.endless || s.seen[id] <= s.polls {
		return &cloudformation.DescribeChangeSetOutput{Status: types.ChangeSetStatusCreateInProgress}, nil
	}
	if attempt := len(s.created) - 1; attempt < len(s.reasons) && s.reasons[attempt] != "" {
		return &cloudformation.DescribeChangeSetOutput{Status: types.ChangeSetStatusFailed, StatusReason: aws.String(s.reasons[attempt])}, nil
	}
	return &cloudformation.DescribeChangeSetOutput{Status: types.ChangeSetStatusCreateComplete}, nil
}

func (s *service) GetTemplate(ctx context.Context, in *cloudformation.GetTemplateInput, _ ...func(*cloudformation.Options)) (*cloudformation.GetTemplateOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.called(ctx, "GetTemplate"); err != nil {
		return nil, err
	}
	if in.TemplateStage != types.TemplateStageProcessed {
		return nil, errors.New("the original template was asked for")
	}
	return &cloudformation.GetTemplateOutput{TemplateBody: aws.String(s.processed)}, nil
}

func (s *service) DeleteStack(ctx context.Context, in *cloudformation.DeleteStackInput, _ ...func(*cloudformation.Options)) (*cloudformation.DeleteStackOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.called(ctx, "DeleteStack"); err != nil {
		return nil, err
	}
	for id, created := range s.stacks {
		if id == aws.ToString(in.StackName) || aws.ToString(created.StackName) == aws.ToString(in.StackName) {
			delete(s.stacks, id)
		}
	}
	return &cloudformation.DeleteStackOutput{}, nil
}

// bucket is where large templates go.
type bucket struct {
	objects map[string]string
	err     error
}

func (b *bucket) Put(_ context.Context, key string, body []byte) (string, error) {
	if b.err != nil {
		return "", b.err
	}
	b.objects[key] = string(body)
	return "https://bucket.example/" + key, nil
}

func (b *bucket) Delete(_ context.Context, key string) error {
	delete(b.objects, key)
	return nil
}

// counter gives a different name each time.
type counter struct{ n byte }

func (c *counter) Read(p []byte) (int, error) {
	c.n++
	for i := range p {
		p[i] = c.n
	}
	return len(p), nil
}

type bench struct {
	service  *service
	bucket   *bucket
	clock    *clock.Fake
	expander *macro.Expander
}

func newBench(processed string) *bench {
	b := &bench{service: newService(processed), bucket: &bucket{objects: map[string]string{}}, clock: clock.NewFake(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	b.clock.AutoAdvance = true
	b.expander = &macro.Expander{CloudFormation: b.service, Uploads: b.bucket, Clock: b.clock, Random: &counter{}}
	return b
}

// clean checks that nothing is left in the account.
func (b *bench) clean(t *testing.T) {
	t.Helper()
	if len(b.service.stacks) != 0 {
		t.Errorf("%d stacks are left", len(b.service.stacks))
	}
	if len(b.bucket.objects) != 0 {
		t.Errorf("%d objects are left", len(b.bucket.objects))
	}
}

func apiError(code string) error {
	return fmt.Errorf("operation error CloudFormation: %w", &smithy.GenericAPIError{Code: code, Message: "as told"})
}
