// Package submit turns a submission into a request that the engine can carry out: it names the stacks' places, stores
// their templates under their digests, and puts what must not be read into the run vault. Every plane does it with
// this code, wherever the submission comes from: the command line's own process, or an upload that was admitted.
package submit

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// Desk takes submissions in for one engine.
type Desk struct {
	Engine *run.Engine
	// Account and Region are where environment-agnostic stacks go. Assets that go there keep their ids.
	Account string
	Region  string
	// Holder is the process that submits, where it can be known that it is gone; see run.Request.
	Holder string
	// RunID is the id of the run; "" draws one.
	RunID string
	// CreatedAt is when the run was asked for; zero is now.
	CreatedAt time.Time
}

// Prepare makes the request of a deployment run over the given stacks, in dependency order. Templates and secrets are
// stored when it returns; the request itself is not: that is what run.Engine.Submit does. It may be repeated.
func (d Desk) Prepare(ctx context.Context, asm *assembly.Assembly, stacks []*assembly.Stack, sub run.Submission) (run.Request, error) {
	req, err := d.request(ctx, stacks, sub)
	if err != nil || !sub.Deploys() {
		return req, err
	}
	for i, s := range stacks {
		if req.Stacks[i].TemplateKey, err = d.Engine.KeepTemplate(ctx, s.Template, "template of stack "+s.Name); err != nil {
			return req, err
		}
		if sub.Options.Recursive {
			if req.Stacks[i].Nested, err = d.nestedTemplates(ctx, asm, s); err != nil {
				return req, err
			}
		}
	}
	return req, nil
}

// Place is the stack as the run log names it: where an environment-agnostic one goes is filled in.
func (d Desk) Place(s *assembly.Stack) runlog.StackRef {
	r := runlog.StackRef{Account: s.Account, Region: s.Region, Name: s.Name}
	if r.Account == "" {
		r.Account = d.Account
	}
	if r.Region == "" {
		r.Region = d.Region
	}
	return r
}

// request describes the stacks of a submission to the engine.
func (d Desk) request(ctx context.Context, stacks []*assembly.Stack, sub run.Submission) (run.Request, error) {
	now := d.CreatedAt
	if now.IsZero() {
		now = d.Engine.Clock.Now().UTC()
	}
	id := d.RunID
	if id == "" {
		id = run.NewRunID(now)
	}
	req := run.Request{
		Version: run.RequestVersion, RunID: id, Command: sub.Command, Of: sub.Of, Caller: sub.Caller,
		Region: d.Region, Options: sub.Options, PlanRun: sub.PlanRun, CreatedAt: now, Holder: d.Holder,
	}
	seen := map[string]bool{}
	for _, s := range stacks {
		r := run.StackRequest{
			StackRef:    d.Place(s),
			DisplayName: s.DisplayName, DependsOn: s.DependsOn, Tags: s.Tags,
			TerminationProtection: s.TerminationProtection,
		}
		if sub.Deploys() {
			var err error
			if r.Parameters, r.NoEcho, err = d.Engine.SealParameters(ctx, req.RunID, s.Template, Values(s, sub)); err != nil {
				return req, fmt.Errorf("the parameters of stack %s: %w", s.Name, err)
			}
		}
		for _, a := range s.Assets {
			// One asset goes to every environment whose stacks need it.
			id := a.ID
			if r.Account != d.Account || r.Region != d.Region {
				id += "." + r.Account + "." + r.Region
			}
			r.Assets = append(r.Assets, id)
			if !seen[id] {
				seen[id] = true
				req.Assets = append(req.Assets, run.AssetRequest{ID: id, Asset: a})
			}
		}
		req.Stacks = append(req.Stacks, r)
	}
	return req, nil
}

// Values are the values that a submission has for the parameters of a stack: what the command line says wins over
// what the app says.
func Values(s *assembly.Stack, sub run.Submission) map[string]string {
	values := maps.Clone(s.Parameters)
	if values == nil {
		values = map[string]string{}
	}
	maps.Copy(values, sub.Parameters[s.ID])
	return values
}
