package run_test

import (
	"context"
	"slices"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// switchboard is the cloud behind a registry that lacks a property, and keeps the requests.
type switchboard struct {
	*cloud
	lacks   string
	created []provider.Request
}

func (s *switchboard) For(typeName string, recorded provider.Route, properties []string) (provider.Provider, provider.Route, error) {
	if slices.Contains(properties, s.lacks) {
		return nil, "", diag.Diagnostic{Severity: diag.Error, Summary: "nobody can set " + s.lacks + " of " + typeName}
	}
	_, route, err := s.cloud.For(typeName, recorded, properties)
	return s, route, err
}

func (s *switchboard) Create(ctx context.Context, req provider.Request) (provider.Progress, error) {
	s.created = append(s.created, req)
	return s.cloud.Create(ctx, req)
}

func TestAProviderIsToldTheOperationItsRepetitionAndTheWaitMode(t *testing.T) {
	w := newWorld(t)
	s := &switchboard{cloud: w.cloud}
	w.engine.Providers = s
	w.cloud.script("create A", script{fails: failsUntil(2, provider.KindThrottled)})
	template := object{"Resources": object{"A": object{"Type": "AWS::SQS::Queue"}}}
	h := w.deploy(template, func(o *run.Options) { o.Wait = provider.WaitFull })
	if h.Result != runlog.ResultSucceeded || len(s.created) != 2 {
		t.Fatalf("%s after %d creates", h.Result, len(s.created))
	}
	first, second := s.created[0], s.created[1]
	if first.Operation == "" || first.Operation != second.Operation || first.Token == second.Token {
		t.Errorf("the operations are %q and %q, the tokens %q and %q", first.Operation, second.Operation, first.Token, second.Token)
	}
	if first.Repeat || !second.Repeat {
		t.Errorf("a repetition: %t, then %t", first.Repeat, second.Repeat)
	}
	if first.Wait != provider.WaitFull {
		t.Errorf("the wait mode is %q", first.Wait)
	}
}

func TestAPropertyThatNobodyCanSetIsRefusedBeforeAnythingIsTouched(t *testing.T) {
	w := newWorld(t)
	w.engine.Providers = &switchboard{cloud: w.cloud, lacks: "DelaySeconds"}
	h := w.deploy(object{"Resources": object{
		"A": object{"Type": "AWS::SQS::Queue"},
		"B": object{"Type": "AWS::SQS::Queue", "Properties": object{"DelaySeconds": 5}},
	}})
	if h.Result == runlog.ResultSucceeded || len(w.cloud.calls) != 0 {
		t.Errorf("%s after %v", h.Result, w.cloud.calls)
	}
}
