package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/macro"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// Macros take from seconds to ten minutes. Open does not wait for them: it starts them, answers WAIT, and is asked
// again, so that no process has to live that long, the stack's lock is renewed at every look, and a cancellation is seen.
//
// They run once for the same template, parameters and stack of a deployment. The runs of its stacks take what its own
// planning has found, and a deploy that is bound to a shown plan takes the template that was shown: macros may answer
// differently every time.
//
// Nothing that they make is forgotten: an attempt is an object below the deployment's run before its first call, and
// names the transient stack. Whoever has the result deletes the stack; whoever closes the deployment deletes all that
// its attempts may have left, also where a process has died, or was late.

// Macros runs the macros of a template in AWS, for the stack that the context acts for; *macro.Expander does for one
// account and region. See there for errors.
type Macros interface {
	Start(ctx context.Context, req macro.Request, h macro.Handle) (macro.Progress, error)
	Poll(ctx context.Context, req macro.Request, h macro.Handle) (macro.Progress, error)
	Discard(ctx context.Context, h macro.Handle) error
}

// macroAttempt is slipway/runs/{root}/macros/{inputs}/{n}.json: an attempt to run the macros of a template, and on whose
// behalf.
type macroAttempt struct {
	Handle macro.Handle    `json:"handle"`
	Stack  runlog.StackRef `json:"stack"`
	Role   *Role           `json:"role,omitempty"`
}

// macroResult is slipway/runs/{root}/macros/{inputs}/result.json: the object that holds the expanded template, or why
// there is none.
type macroResult struct {
	TemplateKey string           `json:"templateKey,omitempty"`
	Problems    diag.Diagnostics `json:"problems,omitempty"`
}

const macroResultName = "result.json"

func macrosPrefix(root string) string { return "slipway/runs/" + root + "/macros/" }

func macroAttemptKey(root, inputs string, n int) string {
	return fmt.Sprintf("%s%s/%d.json", macrosPrefix(root), inputs, n)
}

func macroResultKey(root, inputs string) string {
	return macrosPrefix(root) + inputs + "/" + macroResultName
}

// macrosRunning is why a stack can't be planned yet.
type macrosRunning struct {
	stacks []runlog.StackRef
	wait   time.Duration
}

// Error implements error.
func (m *macrosRunning) Error() string {
	return fmt.Sprintf("the macros of %d stacks are running", len(m.stacks))
}

func stillRunning(err error) *macrosRunning {
	var running *macrosRunning
	errors.As(err, &running)
	return running
}

// expansion is one template to expand.
type expansion struct {
	e      *Engine
	root   string
	acting Acting
	req    macro.Request
	inputs string
}

// newExpansion describes the expansion of a stack's template. gen is what an earlier deploy has left, nil for nothing;
// ctx acts for the stack.
func (e *Engine) newExpansion(ctx context.Context, req Request, s StackRequest, body []byte, gen *state.Generation) (expansion, error) {
	x := expansion{e: e, root: req.root(), acting: ActingOf(ctx), req: macro.Request{Stack: s.Name, Body: body, Key: s.TemplateKey, Parameters: s.Parameters}}
	if gen != nil && s.passed == nil {
		x.req.Kept = gen.Parameters
	}
	values := maps.Clone(x.req.Kept)
	if values == nil {
		values = map[string]string{}
	}
	maps.Copy(values, s.Parameters)
	given, err := marshal(values)
	if err != nil {
		return x, fmt.Errorf("digesting the parameters of stack %s: %w", s.Name, err)
	}
	x.inputs = digest(stackKey(s.StackRef), s.TemplateKey, string(given))
	return x, nil
}

// run returns the key of the expanded template. While the macros run the error is macrosRunning; diag.Diagnostics say
// why there is no such template; warnings what could not be cleaned up.
func (x expansion) run(ctx context.Context) (key string, warnings diag.Diagnostics, err error) {
	if r, err := x.result(ctx); err != nil || r != nil {
		return x.take(r, nil, err)
	}
	attempt, fresh, err := x.latest(ctx)
	if err != nil {
		return "", nil, err
	}
	p := macro.Progress{Status: macro.Absent}
	if !fresh {
		if p, err = x.e.Macros.Poll(ctx, x.req, attempt.Handle); err != nil {
			return x.fail(ctx, attempt, err)
		}
	}
	if p.Status == macro.Refused {
		if err := x.e.Macros.Discard(ctx, attempt.Handle); err != nil {
			warnings = diag.Diagnostics{macro.Left(x.req.Stack, attempt.Handle, err)}
		}
		if attempt, _, err = x.attempt(ctx, attempt.Handle.Attempt+1, attempt.Handle.Started); err != nil {
			return "", warnings, err
		}
		p.Status = macro.Absent
	}
	switch p.Status {
	case macro.Done:
		var r macroResult
		if r.TemplateKey, err = x.e.KeepTemplate(ctx, p.Body, "expanded template of stack "+x.req.Stack); err != nil {
			return "", nil, err
		}
		return x.conclude(ctx, attempt, r)
	case macro.Absent:
		return x.start(ctx, attempt, warnings)
	}
	return "", nil, x.wait(p)
}

// start asks for the change set of an attempt. One that is missing may have been deleted by a twin that has the result:
// it is looked for before, so that the macros are not run again, and after, so that what was made then does not stay.
func (x expansion) start(ctx context.Context, attempt macroAttempt, warnings diag.Diagnostics) (string, diag.Diagnostics, error) {
	if r, err := x.result(ctx); err != nil || r != nil {
		return x.take(r, warnings, err)
	}
	p, err := x.e.Macros.Start(ctx, x.req, attempt.Handle)
	if err != nil {
		return x.fail(ctx, attempt, err)
	}
	r, err := x.result(ctx)
	if err != nil {
		return "", warnings, err
	}
	h, err := x.e.Log.Header(ctx, x.root)
	switch {
	case err != nil:
		return "", warnings, fmt.Errorf("reading the header of run %s: %w", x.root, err)
	case r == nil && h.Result == "":
		return "", warnings, x.wait(p)
	}
	if err := x.e.Macros.Discard(ctx, attempt.Handle); err != nil {
		warnings = append(warnings, macro.Left(x.req.Stack, attempt.Handle, err))
	}
	if r == nil {
		return "", warnings, fmt.Errorf("run %s has ended meanwhile: %w", x.root, runlog.ErrFenced)
	}
	return x.take(r, warnings, nil)
}

// fail ends an expansion with diag.Diagnostics; any other error leaves it to the next look.
func (x expansion) fail(ctx context.Context, attempt macroAttempt, err error) (string, diag.Diagnostics, error) {
	problems, err := refusal(err)
	if err != nil {
		return "", nil, err
	}
	return x.conclude(ctx, attempt, macroResult{Problems: problems})
}

// conclude stores a result, or takes the one that stands, and deletes the transient stack.
func (x expansion) conclude(ctx context.Context, attempt macroAttempt, r macroResult) (string, diag.Diagnostics, error) {
	if err := putOnce(ctx, x.e.Objects, macroResultKey(x.root, x.inputs), &r); err != nil {
		return "", nil, err
	}
	var warnings diag.Diagnostics
	if err := x.e.Macros.Discard(ctx, attempt.Handle); err != nil {
		warnings = append(warnings, macro.Left(x.req.Stack, attempt.Handle, err))
	}
	return x.take(&r, warnings, nil)
}

func (x expansion) take(r *macroResult, warnings diag.Diagnostics, err error) (string, diag.Diagnostics, error) {
	switch {
	case err != nil:
		return "", warnings, err
	case len(r.Problems) > 0:
		return "", nil, append(slices.Clone(r.Problems), warnings...)
	}
	return r.TemplateKey, warnings, nil
}

func (x expansion) wait(p macro.Progress) error {
	return &macrosRunning{stacks: []runlog.StackRef{x.acting.Stack}, wait: p.Wait}
}

// result returns what the expansion has come to, nil while it has not.
func (x expansion) result(ctx context.Context) (*macroResult, error) {
	var r macroResult
	err := getJSON(ctx, x.e.Objects, macroResultKey(x.root, x.inputs), &r)
	if isAbsent(err) {
		return nil, nil
	}
	return &r, err
}

// latest returns the last attempt; fresh says that this process has just made it, the first.
func (x expansion) latest(ctx context.Context) (last macroAttempt, fresh bool, err error) {
	for n := 1; ; n++ {
		var a macroAttempt
		err := getJSON(ctx, x.e.Objects, macroAttemptKey(x.root, x.inputs, n), &a)
		switch {
		case isAbsent(err) && n == 1:
			return x.attempt(ctx, 1, x.e.Clock.Now().UTC())
		case isAbsent(err):
			return last, false, nil
		case err != nil:
			return last, false, err
		}
		last = a
	}
}

// attempt records an attempt before its first call. Of two processes one does; fresh tells whether it was this one.
func (x expansion) attempt(ctx context.Context, n int, started time.Time) (a macroAttempt, fresh bool, err error) {
	a = macroAttempt{Handle: macro.NewHandle(digest(x.root, x.inputs), n, started), Stack: x.acting.Stack}
	if x.acting.Role != (Role{}) {
		a.Role = &x.acting.Role
	}
	body, err := marshal(&a)
	if err != nil {
		return a, false, fmt.Errorf("encoding an attempt at the macros of stack %s: %w", x.req.Stack, err)
	}
	key := macroAttemptKey(x.root, x.inputs, n)
	_, err = x.e.Objects.Put(ctx, key, body, objectstore.Condition{IfNoneMatch: true})
	if errors.Is(err, objectstore.ErrPrecondition) {
		return a, false, getJSON(ctx, x.e.Objects, key, &a)
	}
	if err != nil {
		return a, false, fmt.Errorf("writing %s: %w", key, err)
	}
	return a, true, nil
}

// shown returns the key of the expanded template that a run is bound to: the plan that it was shown was made from it.
// "" where there is none, or other inputs now.
func (x expansion) shown(ctx context.Context, req Request, s StackRequest) (string, error) {
	if req.PlanRun == "" {
		return "", nil
	}
	var views planViews
	err := getJSON(ctx, x.e.Objects, viewsKey(req.PlanRun), &views)
	if err != nil {
		if isAbsent(err) {
			return "", nil
		}
		return "", err
	}
	if b := views.Bindings[stackKey(s.StackRef)]; b.Macros == x.inputs {
		return b.Expanded, nil
	}
	return "", nil
}

// awaitMacros answers for a run whose stacks can't be planned before their macros have run.
func (e *Engine) awaitMacros(ctx context.Context, h runlog.Header, running *macrosRunning) Step {
	for _, s := range running.stacks {
		ev := runEvent(h, 0, runlog.RunningMacros)
		ev.ID = runlog.EventID(0, "macros."+digest(stackKey(s))[:8], runlog.RunningMacros, 0)
		ev.Stack, ev.Region = s.Name, s.Region
		ev.Message = "CloudFormation runs the macros of its template"
		e.append(ctx, ev)
	}
	return Step{RunID: h.RunID, Kind: StepWait, Decision: h.Decision + 1, Seconds: max(int(running.wait.Seconds()), 1)}
}

// startOthers starts the macros of the stacks that are yet to be planned, so that all run at the same time. What is
// wrong with a stack its own turn tells.
func (e *Engine) startOthers(ctx context.Context, req Request, stacks []StackRequest, running *macrosRunning) *macrosRunning {
	all := &macrosRunning{stacks: slices.Clone(running.stacks), wait: running.wait}
	for _, s := range stacks {
		ctx := actingFor(ctx, req.RunID, s)
		if problem, err := e.checkRole(ctx, s); err != nil || problem.HasErrors() {
			continue
		}
		l, _, err := e.planningLedger(ctx, s.StackRef, req.Options.Lenient)
		if err != nil {
			continue
		}
		_, err = e.sourceTemplate(ctx, req, s, l.generation)
		if other := stillRunning(err); other != nil {
			all.stacks, all.wait = append(all.stacks, other.stacks...), min(all.wait, other.wait)
		}
	}
	return all
}

// discardMacros deletes what the attempts of a deployment may have left, before it closes. A stack that can't be deleted
// holds no resources, and keeps no run from closing.
func (e *Engine) discardMacros(ctx context.Context, root string) error {
	if e.Macros == nil {
		return nil
	}
	infos, err := e.Objects.List(ctx, macrosPrefix(root))
	if err != nil {
		return fmt.Errorf("listing the macros of run %s: %w", root, err)
	}
	for _, info := range infos {
		if strings.HasSuffix(info.Key, "/"+macroResultName) {
			continue
		}
		var a macroAttempt
		if err := getJSON(ctx, e.Objects, info.Key, &a); err != nil {
			if isAbsent(err) {
				continue
			}
			return err
		}
		acting := Acting{RunID: root, Stack: a.Stack}
		if a.Role != nil {
			acting.Role = *a.Role
		}
		if err := e.Macros.Discard(WithActing(ctx, acting), a.Handle); err != nil {
			e.logger().LogAttrs(ctx, slog.LevelWarn, "a transient stack may be left over from running macros",
				slog.String("run", root), slog.String("stack", a.Handle.StackName), slog.String("error", err.Error()))
		}
	}
	return nil
}
