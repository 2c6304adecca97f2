package macro

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/template"
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
	// Parameters are the supplied values: macros may read them. Those of NoEcho parameters are not sent, a
	// placeholder goes in their place.
	Parameters map[string]string
}

// Handle is an expansion on its way. It can be stored as JSON and polled by another process.
type Handle struct {
	Version   int       `json:"version"`
	StackName string    `json:"stackName"`
	StackID   string    `json:"stackId,omitempty"`
	ChangeSet string    `json:"changeSet"`
	UploadKey string    `json:"uploadKey,omitempty"`
	Started   time.Time `json:"started"`
	// Attempt counts from 1.
	Attempt int `json:"attempt"`
}

const handleVersion = 1

// Progress is what a poll has found.
type Progress struct {
	// Done: Body is the expanded template. Nothing of the expansion is left in the account but what Warnings name.
	Done     bool
	Body     []byte
	Warnings diag.Diagnostics
	// Handle and Wait say how to go on when it is not done.
	Handle Handle
	Wait   time.Duration
}

// Expander expands templates. It is safe for concurrent use when its parts are.
type Expander struct {
	CloudFormation CloudFormation
	// Uploads may be nil: templates larger than MaxInline are refused then.
	Uploads Uploads
	Clock   clock.Clock
	// Random gives the names of transient stacks; nil means crypto/rand.
	Random io.Reader
}

// Expand runs the macros of a template and waits for the result, up to Timeout. A template without macros is returned
// as it is. The error is diag.Diagnostics. The transient stack and the upload are deleted whatever happens, also when
// ctx ends.
func (e *Expander) Expand(ctx context.Context, req Request) (Progress, error) {
	uses, err := template.FindMacros(req.Body)
	if err != nil {
		return Progress{}, diag.From(err).InStack(req.Stack)
	}
	if len(uses) == 0 {
		return Progress{Done: true, Body: req.Body}, nil
	}
	h, err := e.Start(ctx, req)
	if err != nil {
		return Progress{}, err
	}
	var warnings diag.Diagnostics
	for {
		p, err := e.Poll(ctx, req, h)
		warnings = append(warnings, p.Warnings...)
		p.Warnings = warnings
		if err != nil || p.Done {
			return p, err
		}
		h = p.Handle
		if err := e.Clock.Sleep(ctx, p.Wait); err != nil {
			left := e.Cancel(ctx, h)
			return Progress{Warnings: append(warnings, left...)}, append(e.problem(req, "waiting for the macros has ended", err.Error(), ""), left...)
		}
	}
}

// Start begins an expansion. When it fails nothing is left.
func (e *Expander) Start(ctx context.Context, req Request) (Handle, error) {
	return e.start(ctx, req, e.Clock.Now(), 1)
}

func (e *Expander) start(ctx context.Context, req Request, began time.Time, attempt int) (Handle, error) {
	if len(req.Body) > MaxTemplate {
		return Handle{}, e.problem(req, "the template is too large for its macros",
			fmt.Sprintf("it has %d bytes, and CloudFormation reads %d", len(req.Body), MaxTemplate), "Split the stack, or write out what the macros produce.")
	}
	params, err := placeholders(req)
	if err != nil {
		return Handle{}, diag.From(err).InStack(req.Stack)
	}
	name, err := e.name()
	if err != nil {
		return Handle{}, e.problem(req, "the macros can't be run", "naming the transient stack: "+err.Error(), "")
	}
	h := Handle{Version: handleVersion, StackName: name, ChangeSet: changeSetName, Started: began, Attempt: attempt}
	in := &cloudformation.CreateChangeSetInput{
		StackName: aws.String(name), ChangeSetName: aws.String(changeSetName), ChangeSetType: types.ChangeSetTypeCreate,
		Description:  aws.String("Runs the macros of stack " + req.Stack + ". It is never executed."),
		Capabilities: []types.Capability{types.CapabilityCapabilityAutoExpand, types.CapabilityCapabilityIam, types.CapabilityCapabilityNamedIam},
		Parameters:   params,
		// What the template would create may well exist: the stack itself is deployed. That is no problem here.
		DisableValidation: aws.Bool(true),
	}
	if len(req.Body) <= MaxInline {
		in.TemplateBody = aws.String(string(req.Body))
	} else {
		if e.Uploads == nil {
			return Handle{}, e.problem(req, "the template is too large for its macros",
				fmt.Sprintf("it has %d bytes, more than %d go through a bucket only, and there is none", len(req.Body), MaxInline), "Split the stack, or write out what the macros produce.")
		}
		h.UploadKey = "slipway/macros/" + name + ".json"
		url, err := e.Uploads.Put(ctx, h.UploadKey, req.Body)
		if err != nil {
			warnings := e.Cancel(ctx, h)
			return Handle{}, append(e.problem(req, "the template can't be uploaded for its macros", err.Error(), ""), warnings...)
		}
		in.TemplateURL = aws.String(url)
	}
	out, err := e.CloudFormation.CreateChangeSet(ctx, in)
	if err != nil {
		// The answer may be lost and the stack be there.
		warnings := e.Cancel(ctx, h)
		return Handle{}, append(e.problem(req, "CloudFormation does not run the macros", printable(err.Error()), nextFor(err)), warnings...)
	}
	h.StackID = aws.ToString(out.StackId)
	if id := aws.ToString(out.Id); id != "" {
		h.ChangeSet = id
	}
	return h, nil
}

// name is that of a transient stack: cdkd-macro-expand- and 16 hexadecimal digits (reference §8.11).
func (e *Expander) name() (string, error) {
	r := e.Random
	if r == nil {
		r = rand.Reader
	}
	var b [8]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return "", err
	}
	return stackPrefix + hex.EncodeToString(b[:]), nil
}

// Cancel deletes what an expansion has made, also when ctx has ended. Problems come as warnings that name what is
// left.
func (e *Expander) Cancel(ctx context.Context, h Handle) diag.Diagnostics {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	var ds diag.Diagnostics
	warn := func(what string, err error) {
		ds = append(ds, diag.Diagnostic{Severity: diag.Warning, Summary: what + " is left over from running macros", Detail: printable(err.Error()), Next: "Delete it: it holds no resources."})
	}
	id := h.StackID
	if id == "" {
		id = h.StackName
	}
	if _, err := e.CloudFormation.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: aws.String(id)}); err != nil {
		warn("the stack "+h.StackName, err)
	}
	if h.UploadKey != "" {
		if err := e.Uploads.Delete(ctx, h.UploadKey); err != nil {
			warn("the object "+h.UploadKey, err)
		}
	}
	return ds
}

func (e *Expander) problem(req Request, summary, detail, next string) diag.Diagnostics {
	return diag.Diagnostics{{Severity: diag.Error, Stack: req.Stack, Path: "Transform", Summary: summary, Detail: detail, Next: next}}
}
