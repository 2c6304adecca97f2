// Package services lists the services whose resource types have direct providers: one line each.
package services

import (
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/apigatewayv2"
	"github.com/slipway-cdk/slipway/pkg/provider/cloudwatch"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
	"github.com/slipway-cdk/slipway/pkg/provider/dynamodb"
	"github.com/slipway-cdk/slipway/pkg/provider/ec2"
	"github.com/slipway-cdk/slipway/pkg/provider/events"
	"github.com/slipway-cdk/slipway/pkg/provider/iam"
	"github.com/slipway-cdk/slipway/pkg/provider/kms"
	"github.com/slipway-cdk/slipway/pkg/provider/lambda"
	"github.com/slipway-cdk/slipway/pkg/provider/logs"
	"github.com/slipway-cdk/slipway/pkg/provider/s3bucket"
	"github.com/slipway-cdk/slipway/pkg/provider/scheduler"
	"github.com/slipway-cdk/slipway/pkg/provider/secretsmanager"
	"github.com/slipway-cdk/slipway/pkg/provider/sns"
	"github.com/slipway-cdk/slipway/pkg/provider/sqs"
	"github.com/slipway-cdk/slipway/pkg/provider/ssm"
	"github.com/slipway-cdk/slipway/pkg/provider/stepfunctions"
)

// All returns every service.
func All() []direct.Set {
	return []direct.Set{
		cloudwatch.Service(),
		apigatewayv2.Service(),
		dynamodb.Service(),
		ec2.Service(),
		events.Service(),
		iam.Service(),
		kms.Service(),
		lambda.Service(),
		logs.Service(),
		s3bucket.Service(),
		scheduler.Service(),
		secretsmanager.Service(),
		sns.Service(),
		sqs.Service(),
		ssm.Service(),
		stepfunctions.Service(),
	}
}

// Providers returns the provider of each type, with names for what its template does not name.
func Providers(env direct.Env) map[string]provider.Provider {
	out := map[string]provider.Provider{}
	for _, set := range All() {
		for typeName, p := range set.Providers(env) {
			out[typeName] = provider.Named{Provider: p}
		}
	}
	return out
}

// Coverage lists what every type's provider can set, by type name.
func Coverage() []direct.Coverage {
	var out []direct.Coverage
	for _, set := range All() {
		out = append(out, set.Coverage()...)
	}
	slices.SortFunc(out, func(a, b direct.Coverage) int { return strings.Compare(a.Type, b.Type) })
	return out
}

// Unhandled is provider.Registry.Unhandled.
func Unhandled() func(typeName string, properties []string) []string {
	handled := map[string]map[string]bool{}
	for _, c := range Coverage() {
		handled[c.Type] = map[string]bool{}
		for _, name := range c.Handled {
			handled[c.Type][name] = true
		}
	}
	return func(typeName string, properties []string) []string {
		names, ok := handled[typeName]
		if !ok {
			return nil
		}
		return slices.DeleteFunc(slices.Clone(properties), func(p string) bool { return names[p] })
	}
}
