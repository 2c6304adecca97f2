// Package apigatewayv2 provisions the HTTP and WebSocket APIs of Amazon API Gateway through its own API. Its update calls change what
// they are given and leave the rest: what the template no longer has is given its default.
package apigatewayv2

import (
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/apigatewayv2"
	"github.com/aws/aws-sdk-go-v2/service/apigatewayv2/types"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

type call = direct.Call[*apigatewayv2.Client]

// Service returns the types.
func Service() direct.Set {
	return direct.Service[*apigatewayv2.Client]{
		Name:   "apigateway",
		New:    func(cfg aws.Config) *apigatewayv2.Client { return apigatewayv2.NewFromConfig(cfg) },
		Errors: errorKinds,
		Kinds:  []direct.Kind[*apigatewayv2.Client]{api(), stage(), integration(), route()},
	}
}

// errorKinds are the service's own codes.
// https://docs.aws.amazon.com/apigatewayv2/latest/api-reference/apis-apiid.html
var errorKinds = direct.Errors{
	"ConflictException": provider.KindConflict,
}

// taken is the error of a create: a conflict says that the name is taken, unless it says that the API is being changed by
// another call.
func taken(err error) error {
	var conflict *types.ConflictException
	if !errors.As(err, &conflict) || strings.Contains(conflict.ErrorMessage(), "concurrent modification") {
		return err
	}
	return &provider.Error{Kind: provider.KindAlreadyExists, Code: conflict.ErrorCode(), Message: conflict.ErrorMessage(), Err: err}
}

// changed are the properties of these that an update has to send.
func changed(c *call, names []string) map[string]any {
	out := map[string]any{}
	for _, name := range names {
		if c.Changed(name) && c.Properties[name] != nil {
			out[name] = c.Properties[name]
		}
	}
	return out
}

// apiID is the API that a part belongs to: its own property or, for a part that is only known by its id, the head of that.
func apiID(c *call) *string {
	id := direct.Text(c.Known("ApiId"))
	if head, _, ok := strings.Cut(c.PhysicalID, "|"); ok && id == "" {
		id = head
	}
	return &id
}

// partID is the part's own id, without the API that Cloud Control puts before it.
func partID(c *call) *string {
	id := c.PhysicalID[strings.LastIndexByte(c.PhysicalID, '|')+1:]
	return &id
}

// keys are the names that a map property had and no longer has.
func keys(before, after any) []string {
	was, _ := before.(map[string]any)
	is, _ := after.(map[string]any)
	var gone []string
	for name := range was {
		if is[name] == nil {
			gone = append(gone, name)
		}
	}
	return gone
}

// emptied is a map of texts with an empty text for every name that is gone, which is how the service is told to forget it.
// https://docs.aws.amazon.com/apigatewayv2/latest/api-reference/apis-apiid-integrations-integrationid.html
func emptied(before, after any) map[string]string {
	out := map[string]string{}
	for _, name := range keys(before, after) {
		out[name] = ""
	}
	is, _ := after.(map[string]any)
	for name, v := range is {
		out[name] = direct.Text(v)
	}
	return out
}
