package direct

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/provider"
)

const (
	defaultWindow   = 30 * time.Second
	defaultDeadline = 30 * time.Minute
	// maxTries bounds how often one phase is repeated because its call was throttled, lost or too early: about a minute
	// at the distances of pause.
	maxTries = 10
	// maxRounds bounds how often one facet says ErrAgain.
	maxRounds = 100
	// maxDoubts bounds how often a create is made again because its answer was lost.
	maxDoubts = 4
)

// machine is the provider.Provider of a Kind.
type machine[C any] struct {
	kind   Kind[C]
	errors Errors
	client func(account, region string) C
	clock  clock.Clock
}

var _ provider.Provider = (*machine[int])(nil)

// Create implements provider.Provider.
func (m *machine[C]) Create(ctx context.Context, req provider.Request) (provider.Progress, error) {
	pos := position{Operation: opCreate, Phase: phaseCreate}
	if m.kind.Find != nil && (m.kind.Identity == ByName && m.kind.LookFirst || req.Repeat) {
		pos.Phase = phaseDoubt
	}
	return m.run(ctx, req, pos)
}

// Update implements provider.Provider.
func (m *machine[C]) Update(ctx context.Context, req provider.Request) (provider.Progress, error) {
	c := m.call(req, position{})
	for _, name := range changed(c) {
		if !slices.ContainsFunc(m.kind.Facets, func(f Facet[C]) bool { return slices.Contains(f.Properties, name) }) {
			return provider.Progress{}, &provider.Error{
				Kind: provider.KindImmutable, Code: "NotUpdatable", Message: fmt.Sprintf("%s of %s can't be changed in place", name, req.Type),
			}
		}
	}
	return m.run(ctx, req, position{Operation: opUpdate, Phase: phaseFacets, ID: req.PhysicalID})
}

// Delete implements provider.Provider.
func (m *machine[C]) Delete(ctx context.Context, req provider.Request) (provider.Progress, error) {
	if req.FinalSnapshot != "" {
		return provider.Progress{}, provider.NoFinalSnapshot(req, "Its direct provider")
	}
	pos := position{Operation: opDelete, Phase: phaseDelete, ID: req.PhysicalID}
	if m.kind.Prepare != nil {
		pos.Phase = phasePrepare
	}
	return m.run(ctx, req, pos)
}

// Poll implements provider.Provider.
func (m *machine[C]) Poll(ctx context.Context, req provider.Request, h provider.Handle) (provider.Progress, error) {
	pos, err := open(req, h)
	if err != nil {
		return provider.Progress{}, err
	}
	return m.run(ctx, req, pos)
}

// Read implements provider.Provider.
func (m *machine[C]) Read(ctx context.Context, req provider.Request) (provider.Snapshot, error) {
	live, err := m.read(ctx, m.call(req, position{ID: req.PhysicalID}))
	if err != nil {
		return provider.Snapshot{}, m.errors.wrap(err)
	}
	return provider.Snapshot{PhysicalID: req.PhysicalID, Properties: live.Properties, Attributes: live.Attributes}, nil
}

// call is a step's view of the request.
func (m *machine[C]) call(req provider.Request, pos position) *Call[C] {
	if pos.ID != "" {
		req.PhysicalID = pos.ID
	}
	if req.Properties == nil {
		req.Properties = map[string]any{}
	}
	if pos.Operation == opCreate {
		req.Previous = nil
	}
	return &Call[C]{Request: req, Client: m.client(req.Account, req.Region), Doubt: req.Repeat || pos.Doubts > 0}
}

// run goes on from a position until the operation has ended or has to wait.
func (m *machine[C]) run(ctx context.Context, req provider.Request, pos position) (provider.Progress, error) {
	if pos.Begun.IsZero() {
		pos.Begun = m.clock.Now()
	}
	for {
		c := m.call(req, pos)
		phase, facet := pos.Phase, pos.Facet
		live, wait, err := m.step(ctx, c, &pos)
		throttled := false
		if err == nil {
			pos.Stumbles = 0
		} else {
			failure := m.errors.wrap(err)
			throttled = failure.Kind == provider.KindThrottled
			if wait, err = m.stumble(ctx, &pos, failure); err != nil {
				return provider.Progress{}, m.named(pos, err)
			}
			pos.Stumbles++
		}
		if pos.Phase != phase || pos.Facet != facet {
			pos.Tries, pos.Stumbles = 0, 0
		}
		switch {
		case pos.Phase == phaseDone:
			return m.done(req, pos, live), nil
		case wait <= 0:
			continue
		case m.clock.Now().Add(wait).Sub(pos.Begun) > orElse(m.kind.Deadline, defaultDeadline):
			return provider.Progress{}, m.named(pos, &provider.Error{
				Kind: provider.KindTimeout, Code: "NotStabilized", Message: fmt.Sprintf("%s was not ready in %s", req.Type, orElse(m.kind.Deadline, defaultDeadline)),
			})
		}
		pos.Tries++
		h, err := pos.handle()
		if err != nil {
			return provider.Progress{}, fmt.Errorf("encoding the position of %s: %w", req.LogicalID, err)
		}
		return provider.Progress{PhysicalID: pos.ID, Handle: h, RetryAfter: wait, Throttled: throttled}, nil
	}
}

// done is the progress of an operation that has ended.
func (m *machine[C]) done(req provider.Request, pos position, live Live) provider.Progress {
	if pos.Operation == opDelete {
		return provider.Progress{Done: true, PhysicalID: req.PhysicalID}
	}
	return provider.Progress{Done: true, PhysicalID: pos.ID, Attributes: live.Attributes, Observed: live.Properties}
}

// step makes the calls of one phase and moves the position on. wait > 0: the same position again, then.
func (m *machine[C]) step(ctx context.Context, c *Call[C], pos *position) (live Live, wait time.Duration, err error) {
	switch pos.Phase {
	case phaseCreate:
		id, err := m.kind.Create(ctx, c)
		if err != nil {
			return live, 0, err
		}
		pos.made(id)
	case phaseDoubt:
		wait, err = m.doubt(ctx, c, pos)
	case phaseStable:
		var level Level
		if level, err = m.level(ctx, c); err != nil {
			return live, 0, err
		}
		if level < Usable {
			return live, pause(pos.Tries), nil
		}
		if pos.Phase = phaseFacets; level >= needed(c.Wait) && !m.pending(c, *pos) {
			pos.Phase = phaseRead // it has come as far as it has to
		}
	case phaseFacets:
		return live, 0, m.facets(ctx, c, pos)
	case phaseAwait:
		var level Level
		if level, err = m.level(ctx, c); err != nil {
			return live, 0, err
		}
		if level < needed(c.Wait) {
			return live, pause(pos.Tries), nil
		}
		pos.Phase = phaseRead
	case phaseRead:
		if live, err = m.read(ctx, c); err != nil {
			return live, 0, err
		}
		pos.Phase = phaseDone
	case phasePrepare:
		if err := m.kind.Prepare(ctx, c); err != nil {
			return live, 0, err
		}
		pos.Phase = phaseDelete
	case phaseDelete:
		if err := m.kind.Delete(ctx, c); err != nil {
			return live, 0, err
		}
		if pos.Phase = phaseDone; m.kind.Gone != nil {
			pos.Phase = phaseGone
		}
	case phaseGone:
		gone, err := m.kind.Gone(ctx, c)
		if err != nil {
			return live, 0, err
		}
		if !gone {
			return live, pause(pos.Tries), nil
		}
		pos.Phase = phaseDone
	default:
		err = &provider.Error{Kind: provider.KindFailed, Code: "UnknownHandle", Message: fmt.Sprintf("there is no phase %q", pos.Phase)}
	}
	return live, wait, err
}

// facets puts the next facet that has something to put.
func (m *machine[C]) facets(ctx context.Context, c *Call[C], pos *position) error {
	for ; pos.Facet < len(m.kind.Facets); pos.Facet++ {
		f := m.kind.Facets[pos.Facet]
		if !f.due(c, pos.Operation) {
			continue
		}
		switch err := f.Put(ctx, f.fill(c)); {
		case errors.Is(err, ErrAgain) && pos.Rounds < maxRounds:
			pos.Rounds++
			pos.Phase = phaseStable
			return nil
		case errors.Is(err, ErrAgain):
			return &provider.Error{Kind: provider.KindTimeout, Code: "NotStabilized", Message: fmt.Sprintf("%s takes more calls than it should", strings.Join(f.Properties, ", "))}
		case err != nil:
			return err
		}
		pos.Facet, pos.Rounds = pos.Facet+1, 0
		if f.Settle && m.kind.Stable != nil {
			pos.Phase = phaseStable
		}
		return nil
	}
	pos.Phase = phaseAwait
	return nil
}

// pending reports whether there is a facet left to put.
func (m *machine[C]) pending(c *Call[C], pos position) bool {
	return slices.ContainsFunc(m.kind.Facets[min(pos.Facet, len(m.kind.Facets)):], func(f Facet[C]) bool { return f.due(c, pos.Operation) })
}

// due reports whether an operation has to put the facet.
func (f Facet[C]) due(c *Call[C], operation string) bool {
	if operation == opCreate {
		return !f.Created && slices.ContainsFunc(f.Properties, c.Has)
	}
	return slices.ContainsFunc(f.Properties, c.Changed)
}

// fill gives the properties that are gone from the template their defaults.
func (f Facet[C]) fill(c *Call[C]) *Call[C] {
	filled := *c
	filled.Properties = maps.Clone(c.Properties)
	for name, value := range f.Defaults {
		if c.Removed(name) {
			filled.Properties[name] = value
		}
	}
	return &filled
}

func (m *machine[C]) level(ctx context.Context, c *Call[C]) (Level, error) {
	if m.kind.Stable == nil {
		return Settled, nil
	}
	return m.kind.Stable(ctx, c)
}

func (m *machine[C]) read(ctx context.Context, c *Call[C]) (Live, error) {
	live, err := m.kind.Read(ctx, c)
	if err != nil {
		return Live{}, err
	}
	live.Properties = withoutMark(m.kind.Type, live.Properties)
	return live, nil
}

// doubt looks for what an earlier create has made. What has the mark is ours; a resource without tags is when it has what is
// desired and an earlier call may have been made.
func (m *machine[C]) doubt(ctx context.Context, c *Call[C], pos *position) (time.Duration, error) {
	var found Found
	if m.kind.Find != nil {
		var err error
		if found, err = m.kind.Find(ctx, c); err != nil && !provider.IsNotFound(m.errors.wrap(err)) {
			return 0, err
		}
	}
	switch {
	case found.ID != "" && m.ours(c, found):
		pos.made(found.ID)
		return 0, nil
	case found.ID != "":
		return 0, &provider.Error{
			Kind: provider.KindAlreadyExists, Code: "AlreadyExists",
			Message: fmt.Sprintf("there is a %s with this name, and this operation has not made it", c.Type),
		}
	case pos.Taken && pos.Tries < maxTries:
		return pause(pos.Tries), nil // the name is taken by something that can't be read yet
	case pos.Taken:
		return 0, &provider.Error{Kind: provider.KindAlreadyExists, Code: "AlreadyExists", Message: fmt.Sprintf("the name is taken by another %s", c.Type)}
	case m.kind.Identity == ByMark && m.clock.Now().Sub(pos.since(m.clock.Now())) < orElse(m.kind.Window, defaultWindow):
		return pause(pos.Tries), nil
	}
	pos.Phase, pos.DoubtSince = phaseCreate, time.Time{}
	return 0, nil
}

func (m *machine[C]) ours(c *Call[C], found Found) bool {
	switch {
	case m.kind.Identity == ByMark:
		return true
	case found.Tags != nil:
		return found.Tags[markKey] == c.Mark()
	case m.kind.Identity == ByName:
		return c.Doubt && found.Properties != nil && asDesired(c, found.Properties)
	}
	return true
}

// asDesired reports whether a resource has every property that the template gives and that can be read of it.
func asDesired[C any](c *Call[C], live map[string]any) bool {
	for name, want := range c.Properties {
		if live[name] != nil && !Covers(c.Type, name, live[name], want) {
			return false
		}
	}
	return true
}

// stumble decides what a failed call means for the operation: go on later (nil), or the error that ends it.
func (m *machine[C]) stumble(ctx context.Context, pos *position, failure *provider.Error) (time.Duration, error) {
	if ctx.Err() != nil {
		return 0, &provider.Error{Kind: provider.KindUnavailable, Code: "Interrupted", Message: "the call was cut off", Err: errors.Join(ctx.Err(), failure)}
	}
	wait := max(pause(pos.Stumbles), failure.RetryAfter)
	switch pos.Phase {
	case phaseCreate:
		switch {
		case failure.Kind == provider.KindAlreadyExists && m.kind.Identity == ByName && m.kind.Find != nil && !pos.Taken:
			pos.Phase, pos.Taken = phaseDoubt, true
			return 0, nil
		case failure.Kind == provider.KindUnavailable && pos.Doubts < maxDoubts:
			// The service may have made it.
			pos.Phase, pos.DoubtSince = phaseDoubt, m.clock.Now()
			pos.Doubts++
			return wait, nil
		case failure.Kind == provider.KindUnavailable:
			undecided := *failure
			undecided.Undecided = true
			return 0, &undecided
		case failure.Kind == provider.KindPropagation:
			return 0, failure // nothing is made yet: the engine knows how long this is worth
		}
	case phasePrepare, phaseDelete, phaseGone:
		if failure.Kind == provider.KindNotFound {
			if pos.Phase == phasePrepare {
				pos.Phase = phaseDelete // which tells whether it is the resource that is gone
			} else {
				pos.Phase = phaseDone
			}
			return 0, nil
		}
	case phaseDoubt:
	default:
		// What has just been made is not known everywhere at once.
		if failure.Kind == provider.KindNotFound && pos.Operation == opCreate && pos.Stumbles < maxTries {
			return wait, nil
		}
	}
	if passing(failure.Kind) && pos.Stumbles < maxTries {
		return wait, nil
	}
	return 0, failure
}

// passing reports whether the same call is made again in its phase: what has been done so far is kept. How long a name rests
// and what a later attempt may be worth is the engine's business.
func passing(k provider.Kind) bool {
	switch k {
	case provider.KindThrottled, provider.KindUnavailable, provider.KindConflict, provider.KindPropagation:
		return true
	}
	return false
}

// named is a failure with the name of what it leaves behind.
func (m *machine[C]) named(pos position, err error) error {
	var failure *provider.Error
	if pos.Operation != opCreate || pos.ID == "" || !errors.As(err, &failure) {
		return err
	}
	named := *failure
	named.PhysicalID = pos.ID
	return &named
}

// changed lists the properties that an update is about, sorted.
func changed[C any](c *Call[C]) []string {
	names := map[string]bool{}
	for name := range c.Properties {
		names[name] = c.Changed(name)
	}
	for name := range c.Previous {
		names[name] = c.Changed(name)
	}
	maps.DeleteFunc(names, func(_ string, differs bool) bool { return !differs })
	return slices.SortedFunc(maps.Keys(names), strings.Compare)
}

func needed(mode provider.WaitMode) Level {
	switch mode {
	case provider.WaitNone:
		return Usable
	case provider.WaitFull:
		return Settled
	}
	return Ready
}

// pause grows from one second to ten.
func pause(tries int) time.Duration {
	d := time.Second
	for range tries {
		if d = d * 3 / 2; d > 10*time.Second {
			return 10 * time.Second
		}
	}
	return d
}

func orElse(d, standard time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return standard
}
