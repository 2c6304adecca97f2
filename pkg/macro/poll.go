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

// Poll looks once whether the macros have run. The request is the one that the expansion was started with. When it is
// done, or fails, everything is deleted that the expansion has made.
func (e *Expander) Poll(ctx context.Context, req Request, h Handle) (Progress, error) {
	if h.Version != handleVersion {
		return Progress{}, e.problem(req, "the expansion is another version's", fmt.Sprintf("its version is %d", h.Version), "Run the command again.")
	}
	waited := e.Clock.Now().Sub(h.Started)
	out, err := e.CloudFormation.DescribeChangeSet(ctx, &cloudformation.DescribeChangeSetInput{
		ChangeSetName: aws.String(h.ChangeSet), StackName: stackOf(h),
	})
	switch {
	case err != nil && !(transient(err) && waited < Timeout):
		return e.failed(ctx, req, h, "the macros can't be waited for", printable(err.Error()), nextFor(err))
	case err == nil && out.Status == types.ChangeSetStatusCreateComplete:
		return e.read(ctx, req, h)
	case err == nil && out.Status == types.ChangeSetStatusFailed:
		return e.rejected(ctx, req, h, aws.ToString(out.StatusReason))
	case err == nil && out.Status != types.ChangeSetStatusCreatePending && out.Status != types.ChangeSetStatusCreateInProgress:
		return e.failed(ctx, req, h, "the macros were interrupted", "their change set is "+string(out.Status), "Run the command again.")
	}
	if waited >= Timeout {
		return e.failed(ctx, req, h, "the macros take too long", fmt.Sprintf("they have not ended within %s", Timeout), "Look at the log of the macro's function.")
	}
	return Progress{Handle: h, Wait: pause(waited)}, nil
}

// pause grows with the time that has been waited, from 1 s to 10 s.
func pause(waited time.Duration) time.Duration {
	return min(max(waited/10, time.Second), 10*time.Second).Round(time.Second)
}

func stackOf(h Handle) *string {
	if strings.HasPrefix(h.ChangeSet, "arn:") {
		return nil // the ARN says it all
	}
	return aws.String(h.StackName)
}

// rejected handles a change set that has failed.
func (e *Expander) rejected(ctx context.Context, req Request, h Handle, reason string) (Progress, error) {
	if !strings.Contains(reason, "AWS::EarlyValidation") || h.Attempt > earlyRetries {
		return e.failed(ctx, req, h, "the macros have failed", printable(reason), "Look at the log of the macro's function, or at what it was given.")
	}
	warnings := e.Cancel(ctx, h)
	again, err := e.start(ctx, req, h.Started, h.Attempt+1)
	if err != nil {
		return Progress{Warnings: warnings}, err
	}
	return Progress{Handle: again, Wait: time.Second, Warnings: warnings}, nil
}

func (e *Expander) failed(ctx context.Context, req Request, h Handle, summary, detail, next string) (Progress, error) {
	warnings := e.Cancel(ctx, h)
	return Progress{Warnings: warnings}, append(e.problem(req, summary, detail, next), warnings...)
}

// read takes the processed template and deletes the rest.
func (e *Expander) read(ctx context.Context, req Request, h Handle) (Progress, error) {
	out, err := e.CloudFormation.GetTemplate(ctx, &cloudformation.GetTemplateInput{
		ChangeSetName: aws.String(h.ChangeSet), StackName: stackOf(h), TemplateStage: types.TemplateStageProcessed,
	})
	if err != nil {
		if transient(err) && e.Clock.Now().Sub(h.Started) < Timeout {
			return Progress{Handle: h, Wait: time.Second}, nil
		}
		return e.failed(ctx, req, h, "the expanded template can't be read", printable(err.Error()), nextFor(err))
	}
	body := []byte(aws.ToString(out.TemplateBody))
	if !json.Valid(body) {
		return e.failed(ctx, req, h, "the expanded template is not JSON", "", "A macro has to return its fragment as JSON.")
	}
	left, err := template.FindMacros(body)
	if err != nil {
		return e.failed(ctx, req, h, "the expanded template can't be read", err.Error(), "")
	}
	if len(left) > 0 {
		return e.failed(ctx, req, h, "the expanded template still needs the macro "+left[0].Name, "at "+left[0].Path, "A macro can't produce calls of macros: write out what it produces.")
	}
	return Progress{Done: true, Body: bytes.Clone(body), Warnings: e.Cancel(ctx, h)}, nil
}

func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// transient reports whether a call may succeed when it is repeated: it was throttled, or the service failed.
func transient(err error) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode() {
	case "Throttling", "ThrottlingException", "RequestLimitExceeded", "ServiceUnavailable", "InternalFailure":
		return true
	}
	return api.ErrorFault() == smithy.FaultServer
}

func nextFor(err error) string {
	switch code(err) {
	case "AccessDenied", "AccessDeniedException":
		return "Allow cloudformation:CreateChangeSet, DescribeChangeSet, GetTemplate and DeleteStack on " + stackPrefix + "*, and lambda:InvokeFunction on the macro's function."
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
