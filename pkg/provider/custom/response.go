package custom

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/slipway-cdk/slipway/pkg/provider"
)

// Limits of a response (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-responses.html).
const (
	maxResponse   = 4096 // bytes of the whole response
	maxPhysicalID = 1024 // bytes
)

// response is what a handler answers.
type response struct {
	Status             string         `json:"Status"`
	Reason             string         `json:"Reason"`
	StackID            string         `json:"StackId"`
	RequestID          string         `json:"RequestId"`
	LogicalResourceID  string         `json:"LogicalResourceId"`
	PhysicalResourceID string         `json:"PhysicalResourceId"`
	NoEcho             bool           `json:"NoEcho"`
	Data               map[string]any `json:"Data"`
}

const (
	statusSuccess = "SUCCESS"
	statusFailed  = "FAILED"
)

func unusable(format string, args ...any) *provider.Error {
	return &provider.Error{Kind: provider.KindFailed, Code: "InvalidResponse", Message: "the handler's response can't be used: " + fmt.Sprintf(format, args...)}
}

// parseResponse reads what a handler has put. None of its text is repeated in an error: it is not known whether the
// response is the handler's at all.
func parseResponse(body []byte) (response, error) {
	if len(body) > maxResponse {
		return response{}, unusable("it has %d bytes, more than %d", len(body), maxResponse)
	}
	r, err := decodeResponse(body)
	if err != nil {
		return response{}, unusable("it is no JSON object of the documented form")
	}
	return r, nil
}

func decodeResponse(body []byte) (response, error) {
	var r response
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := dec.Decode(&r); err != nil {
		return r, err
	}
	if dec.More() {
		return r, fmt.Errorf("there is more after the object")
	}
	return r, nil
}

// belongsTo checks that a response is the answer to the request, and complete.
func (r response) belongsTo(req provider.Request, requestType string) error {
	switch {
	case r.RequestID != RequestID(req.Token):
		return unusable("its RequestId is not that of the request")
	case r.StackID != stackID(req):
		return unusable("its StackId is not that of the request")
	case r.LogicalResourceID != req.LogicalID:
		return unusable("its LogicalResourceId is not that of the request")
	}
	return r.complete(requestType)
}

// complete checks what every response needs.
func (r response) complete(requestType string) error {
	switch {
	case r.Status != statusSuccess && r.Status != statusFailed:
		return unusable("its Status is neither SUCCESS nor FAILED")
	case r.Status == statusSuccess && requestType != requestDelete && r.PhysicalResourceID == "":
		return unusable("it has no PhysicalResourceId")
	case len(r.PhysicalResourceID) > maxPhysicalID || !utf8.ValidString(r.PhysicalResourceID):
		return unusable("its PhysicalResourceId is longer than %d bytes, or no text", maxPhysicalID)
	}
	return nil
}

// progress is what a response means for the step.
func (r response) progress(req provider.Request, requestType string) (provider.Progress, error) {
	if r.Status == statusFailed {
		reason := r.Reason
		if reason == "" {
			reason = "the handler gives no reason; see its log"
		}
		failure := &provider.Error{Kind: provider.KindFailed, Code: "HandlerFailed", Message: reason}
		if requestType == requestCreate {
			// What a failed creation has left is deleted under the id that its handler gives it.
			failure.PhysicalID = r.PhysicalResourceID
		}
		return provider.Progress{}, failure
	}
	if requestType == requestDelete {
		return provider.Progress{Done: true, PhysicalID: req.PhysicalID}, nil
	}
	data := r.Data
	if data == nil {
		data = map[string]any{}
	}
	return provider.Progress{Done: true, PhysicalID: r.PhysicalResourceID, Attributes: data, NoEcho: r.NoEcho}, nil
}
