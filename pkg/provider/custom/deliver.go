package custom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/smithy-go"

	"github.com/slipway-cdk/slipway/pkg/provider"
)

// publish delivers a request to the listeners of a topic.
func (p *Provider) publish(ctx context.Context, req provider.Request, at handle, to arn.ARN) (provider.Progress, error) {
	message, err := p.request(ctx, req, at.Request)
	if err != nil {
		return provider.Progress{}, err
	}
	_, err = p.Topics(req.Account, req.Region).Publish(ctx, &sns.PublishInput{
		TopicArn: aws.String(to.String()), Message: aws.String(string(message)),
		Subject: aws.String("AWS CloudFormation custom resource request"),
	})
	if err != nil {
		return provider.Progress{}, wrap(err)
	}
	return p.wait(req, handle{Request: at.Request, Phase: phaseResponse, Since: p.Clock.Now()})
}

// invoke delivers a request to a function that is ready, and attends the invocation for a while. A function that fails
// says so at once; one that takes longer goes on by itself.
func (p *Provider) invoke(ctx context.Context, req provider.Request, at handle, to arn.ARN) (provider.Progress, error) {
	functions := p.Functions(req.Account, req.Region)
	ready, err := functionReady(ctx, functions, to)
	switch {
	case err != nil:
		return provider.Progress{}, err
	case ready:
	case p.Clock.Now().Sub(at.Since) >= readyTimeout:
		return provider.Progress{}, &provider.Error{
			Kind: provider.KindTimeout, Code: "HandlerNotReady", Message: fmt.Sprintf("the handler's function has not become active in %s", readyTimeout),
		}
	default:
		at.Polls++
		return unfinished(at, 2*time.Second)
	}
	message, err := p.request(ctx, req, at.Request)
	if err != nil {
		return provider.Progress{}, err
	}
	attend := p.Attend
	if attend <= 0 {
		attend = defaultAttend
	}
	attended, cancel := context.WithTimeout(ctx, attend)
	defer cancel()
	since := p.Clock.Now()
	out, err := functions.Invoke(attended, &lambda.InvokeInput{
		FunctionName: aws.String(to.String()), InvocationType: types.InvocationTypeRequestResponse, Payload: message,
	}, func(o *lambda.Options) { o.Retryer = aws.NopRetryer{} })
	delivered := handle{Request: at.Request, Phase: phaseResponse, Since: since}
	if err != nil {
		if ctx.Err() == nil && errors.Is(attended.Err(), context.DeadlineExceeded) {
			return p.wait(req, delivered)
		}
		return provider.Progress{}, p.undelivered(err)
	}
	if done, found, err := p.answered(ctx, req, at.Request); found || err != nil {
		return done, err
	}
	if out.FunctionError != nil {
		return provider.Progress{}, functionFailed(out.Payload)
	}
	if r, ok := direct(out.Payload, req, at.Request); ok {
		if err := r.complete(at.Request); err != nil {
			return provider.Progress{}, err
		}
		return r.progress(req, at.Request)
	}
	return p.wait(req, delivered)
}

// secondDelivery is how long an invocation whose answer was lost may take to respond before it is made again.
const secondDelivery = 15 * time.Second

// undelivered is the error of an invocation. One that may have reached the function gets time to respond.
func (p *Provider) undelivered(cause error) error {
	err := wrap(cause)
	var api smithy.APIError
	if err.Undecided && !errors.As(cause, &api) {
		err.RetryAfter = secondDelivery
	}
	return err
}

// request makes the message for the handler.
func (p *Provider) request(ctx context.Context, req provider.Request, requestType string) ([]byte, error) {
	if _, err := timeoutOf(properties(req, requestType)); err != nil {
		return nil, err
	}
	url, err := p.Responses.URL(ctx, responseKey(req))
	if err != nil {
		return nil, &provider.Error{Kind: provider.KindUnavailable, Undecided: true, Code: "NoResponseURL", Message: "the URL for the handler's response could not be made", Err: err}
	}
	return payload(req, requestType, url)
}

// functionReady reports whether a function can be invoked: it is active and no update of it is under way.
func functionReady(ctx context.Context, functions Functions, to arn.ARN) (bool, error) {
	out, err := functions.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: aws.String(to.String())})
	if err != nil {
		return false, wrap(err)
	}
	switch {
	case out.State == types.StateFailed:
		return false, &provider.Error{Kind: provider.KindFailed, Code: "HandlerNotReady", Message: "the handler's function could not be created: " + string(out.StateReasonCode)}
	case out.State == types.StatePending || out.LastUpdateStatus == types.LastUpdateStatusInProgress:
		return false, nil
	}
	return true, nil
}

// functionFailed is the failure of a function that has ended with an error and has not responded.
func functionFailed(payload []byte) error {
	var said struct {
		ErrorType    string `json:"errorType"`
		ErrorMessage string `json:"errorMessage"`
	}
	failure := &provider.Error{Kind: provider.KindFailed, Code: "HandlerCrashed", Message: "the handler's function failed without a response; see its log"}
	if json.Unmarshal(payload, &said) == nil && said.ErrorMessage != "" {
		failure.Message = "the handler's function failed: " + said.ErrorMessage
		if said.ErrorType != "" {
			failure.Message = "the handler's function failed: " + said.ErrorType + ": " + said.ErrorMessage
		}
	}
	return failure
}

// direct is the response of a handler that returns it instead of putting it, as many small ones do (reference §8.9):
// with a Status, or just with a PhysicalResourceId or Data, which is a success. Without a physical id the resource keeps
// the one it has, or takes its logical id.
func direct(payload []byte, req provider.Request, requestType string) (response, bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(payload, &members) != nil {
		return response{}, false
	}
	_, hasStatus := members["Status"]
	_, hasID := members["PhysicalResourceId"]
	_, hasData := members["Data"]
	r, err := decodeResponse(payload)
	if err != nil || !hasStatus && !hasID && !hasData {
		return response{}, false
	}
	if !hasStatus {
		r.Status = statusSuccess
	}
	if r.Status != statusSuccess && r.Status != statusFailed {
		return response{}, false // it is something else's status
	}
	if r.PhysicalResourceID == "" && r.Status == statusSuccess {
		r.PhysicalResourceID = req.PhysicalID
		if requestType == requestCreate {
			r.PhysicalResourceID = req.LogicalID
		}
	}
	return r, true
}
