package custom

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/provider"
)

// The request types (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-requesttypes.html).
const (
	requestCreate = "Create"
	requestUpdate = "Update"
	requestDelete = "Delete"
)

// event is what a handler is sent (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-requests.html).
type event struct {
	RequestType           string         `json:"RequestType"`
	RequestID             string         `json:"RequestId"`
	ResponseURL           string         `json:"ResponseURL"`
	ServiceToken          string         `json:"ServiceToken"`
	StackID               string         `json:"StackId"`
	ResourceType          string         `json:"ResourceType"`
	LogicalResourceID     string         `json:"LogicalResourceId"`
	PhysicalResourceID    string         `json:"PhysicalResourceId,omitempty"`
	ResourceProperties    map[string]any `json:"ResourceProperties"`
	OldResourceProperties map[string]any `json:"OldResourceProperties,omitempty"`
}

// payload builds the request of a step. It holds whatever the properties do, secrets too: it goes to the handler and
// nowhere else.
func payload(req provider.Request, requestType, url string) ([]byte, error) {
	e := event{
		RequestType: requestType, RequestID: RequestID(req.Token), ResponseURL: url,
		StackID: stackID(req), ResourceType: req.Type, LogicalResourceID: req.LogicalID,
	}
	props := properties(req, requestType)
	e.ServiceToken, _ = props[serviceToken].(string)
	e.ResourceProperties = texts(props).(map[string]any)
	if requestType != requestCreate {
		e.PhysicalResourceID = req.PhysicalID
	}
	if requestType == requestUpdate {
		e.OldResourceProperties = texts(req.Previous).(map[string]any)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return nil, &provider.Error{Kind: provider.KindInvalid, Code: "InvalidProperties", Message: "the properties can't be written as JSON", Err: err}
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// stackID is the value of AWS::StackId in the template.
func stackID(req provider.Request) string {
	return intrinsic.PseudoFor(req.Account, req.Region, req.Stack).StackID
}

// texts turns every scalar into text, at any depth, as CloudFormation does with what it sends to handlers. Absent
// properties are an empty object.
func texts(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, member := range v {
			if member != nil {
				out[k] = texts(member)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, element := range v {
			out[i] = texts(element)
		}
		return out
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return v.String()
	case nil:
		return nil
	}
	return fmt.Sprint(v)
}
