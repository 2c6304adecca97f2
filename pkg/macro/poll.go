package macro

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/smithy-go"

	"github.com/slipway-cdk/slipway/pkg/template"
)

// Poll looks once whether the macros have run. The request is the one that the expansion was started with. Nothing is
// changed.
func (e *Expander) Poll(ctx context.Context, req Request, h Handle) (Progress, error) {
	if h.Version != handleVersion {
		return Progress{}, problem(req, "the expansion is another version's", fmt.Sprintf("its version is %d", h.Version), "Run the command again.")
	}
	out, err := e.CloudFormation.DescribeChangeSet(ctx, &cloudformation.DescribeChangeSetInput{
		ChangeSetName: aws.String(changeSetName), StackName: aws.String(h.StackName),
	})
	waited := e.waited(h)
	switch {
	case err != nil && ctx.Err() != nil:
		return Progress{}, fmt.Errorf("waiting for the macros of stack %s: %w", req.Stack, ctx.Err())
	case absent(err) && waited < Timeout:
		return Progress{Status: Absent}, nil
	case err != nil && !(transient(err) && waited < Timeout):
		return Progress{}, problem(req, "the macros can't be waited for", printable(err.Error()), e.nextFor(err))
	case err == nil && out.Status == types.ChangeSetStatusCreateComplete:
		return e.read(ctx, req, h)
	case err == nil && out.Status == types.ChangeSetStatusFailed:
		reason := aws.ToString(out.StatusReason)
		if strings.Contains(reason, "AWS::EarlyValidation") && h.Attempt <= earlyRetries {
			return Progress{Status: Refused}, nil
		}
		return Progress{}, problem(req, "the macros have failed", printable(reason), "Look at the log of the macro's function, or at what it was given.")
	case err == nil && out.Status != types.ChangeSetStatusCreatePending && out.Status != types.ChangeSetStatusCreateInProgress:
		return Progress{}, problem(req, "the macros were interrupted", "their change set is "+string(out.Status), "Run the command again.")
	case waited >= Timeout:
		return Progress{}, problem(req, "the macros take too long", fmt.Sprintf("they have not ended within %s", Timeout), "Look at the log of the macro's function.")
	}
	return Progress{Wait: pause(waited)}, nil
}

// pause grows with the time that has been waited, from 2 s to 10 s: each look is a step of a run's execution, whose
// history has a limit.
func pause(waited time.Duration) time.Duration {
	return min(max(waited/10, 2*time.Second), 10*time.Second).Round(time.Second)
}

// read takes the processed template.
func (e *Expander) read(ctx context.Context, req Request, h Handle) (Progress, error) {
	out, err := e.CloudFormation.GetTemplate(ctx, &cloudformation.GetTemplateInput{
		ChangeSetName: aws.String(changeSetName), StackName: aws.String(h.StackName), TemplateStage: types.TemplateStageProcessed,
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return Progress{}, fmt.Errorf("reading the expanded template of stack %s: %w", req.Stack, ctx.Err())
	case absent(err) && e.waited(h) < Timeout:
		return Progress{Status: Absent}, nil
	case transient(err) && e.waited(h) < Timeout:
		return Progress{Wait: pause(e.waited(h))}, nil
	case err != nil:
		return Progress{}, problem(req, "the expanded template can't be read", printable(err.Error()), e.nextFor(err))
	}
	body := []byte(aws.ToString(out.TemplateBody))
	if !json.Valid(body) {
		return Progress{}, problem(req, "the expanded template is not JSON", "", "A macro has to return its fragment as JSON.")
	}
	left, err := template.FindMacros(body)
	if err != nil {
		return Progress{}, problem(req, "the expanded template can't be read", err.Error(), "")
	}
	if len(left) > 0 {
		return Progress{}, problem(req, "the expanded template still needs the macro "+left[0].Name, "at "+left[0].Path, "A macro can't produce calls of macros: write out what it produces.")
	}
	return Progress{Status: Done, Body: bytes.Clone(body)}, nil
}

func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// absent reports whether there is no such change set, or no such stack: for that CloudFormation has no code of its own.
func absent(err error) bool {
	switch code(err) {
	case "ChangeSetNotFound", "ChangeSetNotFoundException":
		return true
	case "ValidationError":
		return strings.Contains(err.Error(), "does not exist")
	}
	return false
}

// transient reports whether a call may succeed when it is repeated: it was throttled, the service failed, or no answer
// has come.
func transient(err error) bool {
	if err == nil {
		return false
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		return true
	}
	switch api.ErrorCode() {
	case "Throttling", "ThrottlingException", "RequestLimitExceeded", "ServiceUnavailable", "InternalFailure":
		return true
	}
	return api.ErrorFault() == smithy.FaultServer
}

func (e *Expander) nextFor(err error) string {
	switch code(err) {
	case "AccessDenied", "AccessDeniedException":
		if e.Denied != "" {
			return e.Denied
		}
		return "Allow cloudformation:CreateChangeSet, DescribeChangeSet, GetTemplate and DeleteStack on stack/" + stackPrefix + "*, CreateChangeSet on transform/*, and lambda:InvokeFunction on the macro's function."
	case "ValidationError":
		return "Correct the template or its parameters; every parameter that the macros need has to have a value."
	}
	return ""
}

// printable drops control characters from a text of others.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return ' '
		}
		return r
	}, s)
}
