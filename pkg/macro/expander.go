package macro

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/diag"
)

// Bounds of an expansion (reference §8.11;
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html).
const (
	// MaxInline is the size, in bytes, up to which a template travels in the call itself.
	MaxInline = 51_200
	// MaxTemplate is the size, in bytes, up to which CloudFormation reads a template at all.
	MaxTemplate = 1 << 20
	// Timeout is how long macros may take.
	Timeout = 600 * time.Second
	// earlyRetries is how often a rejection by AWS::EarlyValidation is tried again: it looks at resources that are
	// not to be created here, while others may be creating or deleting them.
	earlyRetries = 3

	stackPrefix   = "cdkd-macro-expand-"
	changeSetName = "expand"
	cleanupTime   = 30 * time.Second
)

// Request is a template to expand.
type Request struct {
	// Stack is the name of the stack that the template is of, for messages.
	Stack string
	Body  []byte
	// Key is the object that holds Body, for Templates.
	Key string
	// Parameters are the supplied values: macros may read them. Those of NoEcho parameters are not sent, a
	// placeholder goes in their place.
	Parameters map[string]string
	// Kept are values of an earlier deploy: they count where none is supplied and the declaration still allows them.
	Kept map[string]string
}

// Handle is an expansion, or one attempt at it. It can be stored as JSON, and says everything that a process needs to
// go on with the expansion or to clean up after it: also one that does not know whether anything was called.
type Handle struct {
	Version   int    `json:"version"`
	StackName string `json:"stackName"`
	// Started is when the first attempt began.
	Started time.Time `json:"started"`
	// Attempt counts from 1.
	Attempt int `json:"attempt"`
}

const handleVersion = 1

// NewHandle makes the handle of an attempt. The same id and attempt give the same transient stack, so an id must be
// that of one expansion alone. Its name is cdkd-macro-expand- and 16 hexadecimal digits (reference §8.11).
func NewHandle(id string, attempt int, started time.Time) Handle {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s", attempt, id))
	return Handle{Version: handleVersion, StackName: stackPrefix + hex.EncodeToString(sum[:8]), Started: started, Attempt: attempt}
}

// Status is how far an expansion is.
type Status int

const (
	// Running: look again after Wait.
	Running Status = iota
	// Absent: there is no change set. Start makes one, unless somebody has finished the expansion and deleted it.
	Absent
	// Refused: AWS::EarlyValidation has rejected the change set, and another attempt may do better.
	Refused
	// Done: Body is the expanded template.
	Done
)

// Progress is what a step has found.
type Progress struct {
	Status Status
	Body   []byte
	Wait   time.Duration
}

// Expander expands templates. It is safe for concurrent use when its parts are.
//
// Its errors are of two kinds: diag.Diagnostics are the end of the expansion; after any other error, a context that has
// ended or an address that could not be made, the same step may succeed.
type Expander struct {
	CloudFormation CloudFormation
	// Templates may be nil: templates larger than MaxInline are refused then.
	Templates Templates
	Clock     clock.Clock
	// Denied is what to do where access is denied; "" is to allow the actions.
	Denied string
}

// Start asks for the change set of an attempt. It may be repeated: one that exists is the one that was asked for.
func (e *Expander) Start(ctx context.Context, req Request, h Handle) (Progress, error) {
	if len(req.Body) > MaxTemplate {
		return Progress{}, problem(req, "the template is too large for its macros",
			fmt.Sprintf("it has %d bytes, and CloudFormation reads %d", len(req.Body), MaxTemplate), "Split the stack, or write out what the macros produce.")
	}
	params, err := placeholders(req)
	if err != nil {
		return Progress{}, diag.From(err).InStack(req.Stack)
	}
	in := &cloudformation.CreateChangeSetInput{
		StackName: aws.String(h.StackName), ChangeSetName: aws.String(changeSetName), ChangeSetType: types.ChangeSetTypeCreate,
		ClientToken:  aws.String(h.StackName),
		Description:  aws.String("Runs the macros of stack " + req.Stack + ". It is never executed."),
		Capabilities: []types.Capability{types.CapabilityCapabilityAutoExpand, types.CapabilityCapabilityIam, types.CapabilityCapabilityNamedIam},
		Parameters:   params,
		// What the template would create may well exist: the stack itself is deployed. That is no problem here.
		DisableValidation: aws.Bool(true),
	}
	if len(req.Body) <= MaxInline {
		in.TemplateBody = aws.String(string(req.Body))
	} else {
		if e.Templates == nil {
			return Progress{}, problem(req, "the template is too large for its macros",
				fmt.Sprintf("it has %d bytes, more than %d go through a bucket only, and there is none", len(req.Body), MaxInline), "Split the stack, or write out what the macros produce.")
		}
		url, err := e.Templates.URL(ctx, req.Key)
		if err != nil {
			return Progress{}, err
		}
		in.TemplateURL = aws.String(url)
	}
	_, err = e.CloudFormation.CreateChangeSet(ctx, in)
	switch {
	case err == nil, code(err) == "AlreadyExistsException":
		return Progress{Wait: pause(0)}, nil
	case ctx.Err() != nil:
		return Progress{}, fmt.Errorf("asking for the macros of stack %s: %w", req.Stack, ctx.Err())
	case transient(err) && e.waited(h) < Timeout:
		// Whether it was made the next look tells.
		return Progress{Wait: pause(e.waited(h))}, nil
	}
	// CloudFormation may quote the address, which lets anybody read the template for a while.
	detail := printable(err.Error())
	if url := aws.ToString(in.TemplateURL); url != "" {
		detail = strings.ReplaceAll(detail, url, req.Key)
	}
	return Progress{}, problem(req, "CloudFormation does not run the macros", detail, e.nextFor(err))
}

// Discard deletes what an attempt has made, also when ctx has ended. Nothing there is success.
func (e *Expander) Discard(ctx context.Context, h Handle) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	if _, err := e.CloudFormation.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: aws.String(h.StackName)}); err != nil {
		return fmt.Errorf("deleting the transient stack %s: %w", h.StackName, err)
	}
	return nil
}

// Left warns of what Discard could not delete.
func Left(stack string, h Handle, err error) diag.Diagnostic {
	return diag.Diagnostic{
		Severity: diag.Warning, Stack: stack, Summary: "the stack " + h.StackName + " is left over from running macros",
		Detail: printable(err.Error()), Next: "Delete it: it holds no resources.",
	}
}

func (e *Expander) waited(h Handle) time.Duration { return e.Clock.Now().Sub(h.Started) }

func problem(req Request, summary, detail, next string) diag.Diagnostics {
	return diag.Diagnostics{{Severity: diag.Error, Stack: req.Stack, Path: "Transform", Summary: summary, Detail: detail, Next: next}}
}
