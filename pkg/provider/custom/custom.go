// Package custom provisions custom resources: Custom::* and AWS::CloudFormation::CustomResource, whose handler is a
// Lambda function or whoever listens to an SNS topic
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-custom-resources.html; reference §8.9).
//
// A step sends the handler one request and waits for its response, an object that the handler puts through a presigned
// URL. The request id derives from the step's token: a repeated step is the same request to the handler, and a response
// that is there already ends the step without a call. No step waits for long: what takes time is a handle.
package custom

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/google/uuid"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/provider"
)

// Functions is the part of the Lambda client that is used. Its own retries must be off for Invoke: an invocation whose
// answer is lost is waited for, not made again.
type Functions interface {
	GetFunctionConfiguration(context.Context, *lambda.GetFunctionConfigurationInput, ...func(*lambda.Options)) (*lambda.GetFunctionConfigurationOutput, error)
	Invoke(context.Context, *lambda.InvokeInput, ...func(*lambda.Options)) (*lambda.InvokeOutput, error)
}

// Topics is the part of the SNS client that is used.
type Topics interface {
	Publish(context.Context, *sns.PublishInput, ...func(*sns.Options)) (*sns.PublishOutput, error)
}

// Responses is where handlers put their responses.
type Responses interface {
	// URL returns a presigned URL under which a handler can put its response, as it is sent: without a checksum of the
	// payload, which no handler computes.
	URL(ctx context.Context, key string) (string, error)
	// Get returns a response, or false while there is none.
	Get(ctx context.Context, key string) (body []byte, there bool, err error)
	// Delete removes a response; nothing there is success.
	Delete(ctx context.Context, key string) error
}

// Provider implements provider.Provider for custom resources. All members but Attend must be set.
type Provider struct {
	Functions func(account, region string) Functions
	Topics    func(account, region string) Topics
	Responses Responses
	Clock     clock.Clock
	// Attend is how long an invocation is attended: what the handler says within that time, above all that it has
	// failed, is known at once. 0 means ten seconds. After it the function goes on and its response is polled for.
	Attend time.Duration
}

var (
	_ provider.Provider = (*Provider)(nil)
	_ provider.Cleaner  = (*Provider)(nil)
)

const (
	providerName  = "custom"
	handleVersion = 1
	// defaultTimeout is how long a response is waited for unless ServiceTimeout says otherwise, and the longest it may
	// say (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-cloudformation-customresource.html).
	defaultTimeout = time.Hour
	// readyTimeout is how long the function may take to become ready (reference §8.9).
	readyTimeout = 10 * time.Minute
	// defaultAttend is short against the time of a Lambda function and long against that of most handlers.
	defaultAttend = 10 * time.Second
)

// phase is what a handle waits for.
type phase string

const (
	phaseReady    phase = "ready"    // the function is being created or updated
	phaseResponse phase = "response" // the request is delivered
)

// handle is what Poll needs. The request itself is made again from the step.
type handle struct {
	Request string    `json:"request"` // RequestType
	Phase   phase     `json:"phase"`
	Since   time.Time `json:"since"` // the beginning of the phase
	Polls   int       `json:"polls,omitempty"`
}

// Create implements provider.Provider.
func (p *Provider) Create(ctx context.Context, req provider.Request) (provider.Progress, error) {
	return p.begin(ctx, req, requestCreate)
}

// Update implements provider.Provider. A handler that answers with another physical id has replaced the resource.
func (p *Provider) Update(ctx context.Context, req provider.Request) (provider.Progress, error) {
	return p.begin(ctx, req, requestUpdate)
}

// Delete implements provider.Provider. A handler that is gone can't be asked: its resource counts as deleted. One that
// can't be reached, or refuses, leaves the resource in the record: Progress.Skipped says why.
func (p *Provider) Delete(ctx context.Context, req provider.Request) (provider.Progress, error) {
	if req.FinalSnapshot != "" {
		return provider.Progress{}, provider.NoFinalSnapshot(req, "The handler of a custom resource")
	}
	if _, ok := req.Previous[serviceToken].(string); !ok {
		return provider.Progress{Skipped: "its record names no handler that could be asked to delete it", Done: true}, nil
	}
	progress, err := p.begin(ctx, req, requestDelete)
	return unlessDeleted(req, progress, err)
}

// Poll implements provider.Provider.
func (p *Provider) Poll(ctx context.Context, req provider.Request, h provider.Handle) (provider.Progress, error) {
	var at handle
	if h.Provider != providerName || h.Version != handleVersion || json.Unmarshal(h.Data, &at) != nil || at.Request == "" {
		return provider.Progress{}, &provider.Error{
			Kind: provider.KindFailed, Code: "UnknownHandle",
			Message: "the request to the handler of " + req.LogicalID + " was begun by another release, or by another provider",
		}
	}
	progress, err := p.goOn(ctx, req, at)
	if at.Request == requestDelete {
		return unlessDeleted(req, progress, err)
	}
	return progress, err
}

// Read implements provider.Provider. A custom resource can't be read: its handler alone knows it.
func (p *Provider) Read(context.Context, provider.Request) (provider.Snapshot, error) {
	return provider.Snapshot{}, &provider.Error{Kind: provider.KindUnsupported, Message: "a custom resource can't be read"}
}

// Clean implements provider.Cleaner: the response goes once the result of its step is recorded. It may hold secrets.
func (p *Provider) Clean(ctx context.Context, req provider.Request) error {
	if err := p.Responses.Delete(ctx, responseKey(req)); err != nil {
		return fmt.Errorf("removing the response of the handler of %s: %w", req.LogicalID, err)
	}
	return nil
}

// unlessDeleted turns a failed request to delete into what it means: the resource is still recorded, and was not
// addressed. What may be repeated stays an error.
func unlessDeleted(req provider.Request, progress provider.Progress, err error) (provider.Progress, error) {
	switch kind := provider.KindOf(err); {
	case err == nil || provider.IsUndecided(err) || provider.RetryableKind(kind):
		return progress, err
	case kind == provider.KindNotFound:
		return provider.Progress{Done: true, PhysicalID: req.PhysicalID}, nil
	}
	return provider.Progress{Done: true, Skipped: "its handler has not deleted it: " + err.Error()}, nil
}

// RequestID is the id of the request that a token stands for: a UUID, as CloudFormation's are.
func RequestID(token string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("slipway:custom-resource:"+token)).String()
}

// responseKey is the object that holds a response (reference §8.9).
func responseKey(req provider.Request) string {
	return "custom-resource-responses/" + RequestID(req.Token) + ".json"
}

// begin makes the first move of a request: it may have been made before, by a process that has died.
func (p *Provider) begin(ctx context.Context, req provider.Request, requestType string) (provider.Progress, error) {
	if !provider.IsCustom(req.Type) {
		return provider.Progress{}, &provider.Error{Kind: provider.KindUnsupported, Code: "NotCustom", Message: req.Type + " is no custom resource"}
	}
	if done, found, err := p.answered(ctx, req, requestType); found || err != nil {
		return done, err
	}
	return p.goOn(ctx, req, handle{Request: requestType, Phase: phaseReady, Since: p.Clock.Now()})
}

// goOn makes the next move from a position.
func (p *Provider) goOn(ctx context.Context, req provider.Request, at handle) (provider.Progress, error) {
	to, err := serviceOf(req, at.Request)
	if err != nil {
		return provider.Progress{}, err
	}
	if at.Phase == phaseReady {
		if to.Service == "sns" {
			return p.publish(ctx, req, at, to)
		}
		return p.invoke(ctx, req, at, to)
	}
	if done, found, err := p.answered(ctx, req, at.Request); found || err != nil {
		return done, err
	}
	return p.wait(req, at)
}

// wait is the handle of a request that has been delivered, or the end of its time.
func (p *Provider) wait(req provider.Request, at handle) (provider.Progress, error) {
	limit, err := timeoutOf(properties(req, at.Request))
	if err != nil {
		return provider.Progress{}, err
	}
	if p.Clock.Now().Sub(at.Since) >= limit {
		return provider.Progress{}, &provider.Error{
			Kind: provider.KindTimeout, Code: "NoResponse",
			Message: fmt.Sprintf("the handler has not responded to the %s request in %s; see its log", at.Request, limit),
		}
	}
	delay := 2 * time.Second
	for range min(at.Polls, 8) {
		delay += delay / 2
	}
	at.Polls++
	return unfinished(at, min(delay, 30*time.Second))
}

func unfinished(at handle, retry time.Duration) (provider.Progress, error) {
	data, err := json.Marshal(at)
	if err != nil {
		return provider.Progress{}, fmt.Errorf("encoding the handle of a custom resource: %w", err)
	}
	return provider.Progress{
		Handle:     &provider.Handle{Version: handleVersion, Provider: providerName, Data: data},
		RetryAfter: retry,
	}, nil
}

// answered looks for the response.
func (p *Provider) answered(ctx context.Context, req provider.Request, requestType string) (provider.Progress, bool, error) {
	body, there, err := p.Responses.Get(ctx, responseKey(req))
	if err != nil {
		return provider.Progress{}, false, &provider.Error{Kind: provider.KindUnavailable, Undecided: true, Code: "NoResponseStore", Message: "the response of the handler could not be looked for", Err: err}
	}
	if !there {
		return provider.Progress{}, false, nil
	}
	r, err := parseResponse(body)
	if err == nil {
		err = r.belongsTo(req, requestType)
	}
	if err != nil {
		return provider.Progress{}, true, err
	}
	done, err := r.progress(req, requestType)
	return done, true, err
}

// The names of properties that are the resource's own, not its handler's.
const (
	serviceToken   = "ServiceToken"
	serviceTimeout = "ServiceTimeout"
)

// properties are those that say who the handler is and how long it may take: of a resource that is deleted, those that
// it was made from.
func properties(req provider.Request, requestType string) map[string]any {
	if requestType == requestDelete {
		return req.Previous
	}
	return req.Properties
}

// serviceOf says who handles the resource.
func serviceOf(req provider.Request, requestType string) (arn.ARN, error) {
	text, _ := properties(req, requestType)[serviceToken].(string)
	to, err := arn.Parse(text)
	switch {
	case err != nil || to.Service != "lambda" && to.Service != "sns":
		return to, &provider.Error{
			Kind: provider.KindInvalid, Code: "InvalidServiceToken",
			Message: "ServiceToken must be the ARN of a Lambda function or of an SNS topic",
		}
	case to.Region != req.Region:
		return to, &provider.Error{
			Kind: provider.KindInvalid, Code: "InvalidServiceToken",
			Message: "ServiceToken names a handler in another region than the stack's",
		}
	}
	return to, nil
}

// timeoutOf is ServiceTimeout: whole seconds from 1 to 3600, as a number or as text.
func timeoutOf(props map[string]any) (time.Duration, error) {
	v, given := props[serviceTimeout]
	if !given || v == nil {
		return defaultTimeout, nil
	}
	n, err := strconv.Atoi(strings.TrimSpace(fmt.Sprint(v)))
	if err != nil || n < 1 || n > int(defaultTimeout/time.Second) {
		return 0, &provider.Error{
			Kind: provider.KindInvalid, Code: "InvalidServiceTimeout", Message: "ServiceTimeout must be a whole number of seconds from 1 to 3600",
		}
	}
	return time.Duration(n) * time.Second, nil
}
