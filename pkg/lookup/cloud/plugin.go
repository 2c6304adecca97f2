package cloud

import (
	"context"

	"github.com/slipway-cdk/slipway/pkg/lookup"
)

// PluginError: the query is for code that only the CDK CLI can load.
type PluginError struct{ Name string }

// Error implements error.
func (e *PluginError) Error() string {
	return "the app asks plugin " + e.Name + ", which is JavaScript for the CDK CLI and can't be loaded here"
}

// Next says what to do.
func (e *PluginError) Next() string {
	return "Run `cdk synth --plugin` once, which writes the answer into cdk.context.json, and commit that file."
}

func plugin(_ context.Context, q lookup.Query) (any, error) {
	name, _ := q.Props["pluginName"].(string)
	return nil, &PluginError{Name: name}
}
