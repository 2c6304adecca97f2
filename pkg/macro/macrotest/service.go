// Package macrotest has a CloudFormation that runs macros, as far as package macro calls it, for the tests of who uses
// that.
package macrotest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/smithy-go"

	"github.com/slipway-cdk/slipway/pkg/macro"
)

// Service is CloudFormation in one account and region. It is safe for concurrent use; its members are set before.
type Service struct {
	// Macro makes the processed template of a change set, the nth that was made; a failure is why there is none.
	Macro func(in *cloudformation.CreateChangeSetInput, n int) (processed, failure string)
	// Polls is how many looks at a change set find it in progress; a negative number is for ever.
	Polls int
	// Around, when set, is asked to make every call: it may break it, before or after it has taken effect.
	Around func(ctx context.Context, call string, do func() error) error

	mu      sync.Mutex
	stacks  map[string]*changeSet
	created []*cloudformation.CreateChangeSetInput
}

type changeSet struct {
	in   *cloudformation.CreateChangeSetInput
	n    int
	seen int
}

var _ macro.CloudFormation = (*Service)(nil)

// Created lists the change sets that were made, in order.
func (s *Service) Created() []*cloudformation.CreateChangeSetInput {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.created)
}

// Standing lists the stacks that have not been deleted, sorted.
func (s *Service) Standing() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.stacks))
}

func (s *Service) call(ctx context.Context, name string, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	locked := func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		return do()
	}
	if s.Around != nil {
		return s.Around(ctx, name, locked)
	}
	return locked()
}

// CreateChangeSet implements macro.CloudFormation. Like AWS's it refuses a name that is taken.
func (s *Service) CreateChangeSet(ctx context.Context, in *cloudformation.CreateChangeSetInput, _ ...func(*cloudformation.Options)) (*cloudformation.CreateChangeSetOutput, error) {
	err := s.call(ctx, "create change set", func() error {
		name := aws.ToString(in.StackName)
		if s.stacks[name] != nil {
			return &types.AlreadyExistsException{Message: aws.String("ChangeSet " + aws.ToString(in.ChangeSetName) + " already exists")}
		}
		if s.stacks == nil {
			s.stacks = map[string]*changeSet{}
		}
		s.created = append(s.created, in)
		s.stacks[name] = &changeSet{in: in, n: len(s.created)}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &cloudformation.CreateChangeSetOutput{}, nil
}

// DescribeChangeSet implements macro.CloudFormation.
func (s *Service) DescribeChangeSet(ctx context.Context, in *cloudformation.DescribeChangeSetInput, _ ...func(*cloudformation.Options)) (*cloudformation.DescribeChangeSetOutput, error) {
	out := &cloudformation.DescribeChangeSetOutput{Status: types.ChangeSetStatusCreateComplete}
	err := s.call(ctx, "describe change set", func() error {
		c, err := s.find(in.StackName, in.ChangeSetName)
		if err != nil {
			return err
		}
		c.seen++
		if s.Polls < 0 || c.seen <= s.Polls {
			out.Status = types.ChangeSetStatusCreateInProgress
			return nil
		}
		if _, failure := s.Macro(c.in, c.n); failure != "" {
			out.Status, out.StatusReason = types.ChangeSetStatusFailed, &failure
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// GetTemplate implements macro.CloudFormation.
func (s *Service) GetTemplate(ctx context.Context, in *cloudformation.GetTemplateInput, _ ...func(*cloudformation.Options)) (*cloudformation.GetTemplateOutput, error) {
	out := &cloudformation.GetTemplateOutput{}
	err := s.call(ctx, "get template", func() error {
		if in.TemplateStage != types.TemplateStageProcessed {
			return errors.New("the original template was asked for")
		}
		c, err := s.find(in.StackName, in.ChangeSetName)
		if err != nil {
			return err
		}
		processed, _ := s.Macro(c.in, c.n)
		out.TemplateBody = &processed
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// DeleteStack implements macro.CloudFormation. Like AWS's it deletes a stack that is not there.
func (s *Service) DeleteStack(ctx context.Context, in *cloudformation.DeleteStackInput, _ ...func(*cloudformation.Options)) (*cloudformation.DeleteStackOutput, error) {
	err := s.call(ctx, "delete stack", func() error {
		delete(s.stacks, aws.ToString(in.StackName))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &cloudformation.DeleteStackOutput{}, nil
}

// find is called with mu held. AWS has no code of its own for a stack that does not exist.
func (s *Service) find(stack, set *string) (*changeSet, error) {
	c := s.stacks[aws.ToString(stack)]
	switch {
	case c == nil:
		return nil, &smithy.GenericAPIError{Code: "ValidationError", Message: "Stack [" + aws.ToString(stack) + "] does not exist"}
	case aws.ToString(c.in.ChangeSetName) != aws.ToString(set):
		return nil, &types.ChangeSetNotFoundException{Message: aws.String("ChangeSet [" + aws.ToString(set) + "] does not exist")}
	}
	return c, nil
}
