package sim

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	"github.com/slipway-cdk/slipway/pkg/provider"
)

// direct is a provider of services' own APIs. A named resource is recovered by its name and a tag that holds the
// token of the request that made it; an unnamed one by the client token, which its service knows for ever.
type direct struct {
	p *process
	c *cloud
}

var (
	_ provider.Provider = (*direct)(nil)
	_ provider.Provider = (*custom)(nil)
)

var directAnswers = answers{
	broken:    &provider.Error{Kind: provider.KindUnavailable, Code: "InternalError", Message: "the service did not answer", Undecided: true},
	throttled: &provider.Error{Kind: provider.KindThrottled, Code: "Throttling", Message: "Rate exceeded", Undecided: true},
	refused:   errHandler,
}

// errFailed is the answer of a service that has failed to carry out a request, and says so.
var errFailed = &provider.Error{Kind: provider.KindUnavailable, Code: "InternalFailure", Message: "the service failed"}

func refusal(kind provider.Kind, message string) error {
	return &provider.Error{Kind: kind, Code: string(kind), Message: message}
}

// handleData is what Poll needs.
type handleData struct {
	ID    string    `json:"id"`
	Ready time.Time `json:"ready"`
}

func (d *direct) write(ctx context.Context, method string, req provider.Request, do func() error) error {
	return d.c.write(ctx, d.p, method, "direct "+req.Token, req.Type+" "+req.LogicalID+" "+req.PhysicalID, do)
}

// whileAlive makes a call come to nothing that is made after its context has ended: these services know no tokens, or
// not for long, and the engine must not rely on them.
func whileAlive(ctx context.Context, do func() error) func() error {
	return func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return do()
	}
}

// write makes a call that changes something. A service that has carried a request out does not fail its repetition, and
// one that has failed it does not carry it out when it comes again.
func (c *cloud) write(ctx context.Context, p *process, method, token, detail string, do func() error) error {
	err := p.call(provides|writes, method, detail, directAnswers, whileAlive(ctx, func() error {
		if c.failed[token] && c.tokens[token] == nil {
			return errFailed
		}
		return do()
	}))
	switch {
	case err != errHandler: //nolint:errorlint // it is the very value
		return err
	case c.tokens[token] != nil:
		return do()
	}
	c.failed[token] = true
	return errFailed
}

// Create implements provider.Provider.
func (d *direct) Create(ctx context.Context, req provider.Request) (provider.Progress, error) {
	var made *thing
	err := d.write(ctx, "direct.Create", req, func() error {
		if known := d.c.tokens["direct "+req.Token]; known != nil && kindOf(req.Type).named == "" {
			if made = d.c.get(req.Type, known.id); made == nil {
				return refusal(provider.KindNotFound, "what the token has made is gone")
			}
			return nil
		}
		if isBad(req.Properties, req.Type) {
			return refusal(provider.KindInvalid, "the service does not want it")
		}
		t, ok := d.c.make(req.Type, plain(req.Properties), req.Token)
		if !ok {
			return refusal(provider.KindAlreadyExists, "the name is taken")
		}
		d.c.tokens["direct "+req.Token] = &request{id: t.id}
		made = t
		return nil
	})
	if provider.IsAlreadyExists(err) {
		if made, err = d.mine(req, err); err != nil {
			return provider.Progress{}, err
		}
	}
	if err != nil {
		return provider.Progress{}, err
	}
	return d.started(req, made)
}

// mine finds what an earlier try of the very request has made.
func (d *direct) mine(req provider.Request, taken error) (made *thing, err error) {
	name, _ := req.Properties[kindOf(req.Type).named].(string)
	err = d.p.call(provides, "direct.Describe", req.Type+" "+name, directAnswers, func() error {
		t := d.c.live[d.c.names[req.Type+" "+name]]
		if t == nil || t.token != req.Token {
			return taken
		}
		made = t
		return nil
	})
	return orZero(made, err)
}

// started is the answer to a request that has begun.
func (d *direct) started(req provider.Request, t *thing) (provider.Progress, error) {
	takes := d.c.takes(req.Token)
	if takes == 0 {
		return d.done(t), nil
	}
	data, err := json.Marshal(handleData{ID: t.id, Ready: d.c.w.s.time().Add(takes)})
	if err != nil {
		return provider.Progress{}, err
	}
	return provider.Progress{
		PhysicalID: t.id, Handle: &provider.Handle{Version: 1, Provider: "direct", Data: data}, RetryAfter: min(takes, 30*time.Second),
	}, nil
}

func (d *direct) done(t *thing) provider.Progress {
	m := t.model()
	return provider.Progress{Done: true, PhysicalID: t.id, Attributes: m, Observed: m}
}

// Update implements provider.Provider.
func (d *direct) Update(ctx context.Context, req provider.Request) (provider.Progress, error) {
	var t *thing
	err := d.write(ctx, "direct.Update", req, func() error {
		if t = d.c.get(req.Type, req.PhysicalID); t == nil {
			return refusal(provider.KindNotFound, "there is no "+req.PhysicalID)
		}
		if known := d.c.tokens["direct "+req.Token]; known != nil {
			return nil
		}
		if isBad(req.Properties, req.Type) {
			return refusal(provider.KindInvalid, "the service does not want it")
		}
		props := plain(req.Properties)
		if n := kindOf(req.Type).named; n != "" {
			props[n] = t.name
		}
		d.c.change(t, props)
		d.c.tokens["direct "+req.Token] = &request{id: t.id}
		return nil
	})
	if err != nil {
		return provider.Progress{}, err
	}
	return d.started(req, t)
}

// Delete implements provider.Provider.
func (d *direct) Delete(ctx context.Context, req provider.Request) (provider.Progress, error) {
	err := d.write(ctx, "direct.Delete", req, func() error {
		switch t := d.c.get(req.Type, req.PhysicalID); {
		case t == nil:
			return nil
		case d.c.tokens["direct "+req.Token] != nil:
			return nil
		case d.c.inUse(t):
			return refusal(provider.KindDependencyViolation, "something uses it")
		default:
			d.c.remove(t)
			d.c.tokens["direct "+req.Token] = &request{id: t.id}
			return nil
		}
	})
	return provider.Progress{Done: true, PhysicalID: req.PhysicalID}, err
}

// Poll implements provider.Provider.
func (d *direct) Poll(_ context.Context, req provider.Request, h provider.Handle) (out provider.Progress, err error) {
	var data handleData
	if err := json.Unmarshal(h.Data, &data); err != nil {
		return provider.Progress{}, err
	}
	err = d.p.call(provides, "direct.Poll", req.Type+" "+data.ID, directAnswers, func() error {
		t := d.c.get(req.Type, data.ID)
		if t == nil {
			return refusal(provider.KindNotFound, "there is no "+data.ID)
		}
		if left := data.Ready.Sub(d.c.w.s.time()); left > 0 {
			out = provider.Progress{PhysicalID: data.ID, Handle: &h, RetryAfter: min(left, 30*time.Second)}
		} else {
			out = d.done(t)
		}
		return nil
	})
	return orZero(out, err)
}

// Read implements provider.Provider.
func (d *direct) Read(_ context.Context, req provider.Request) (out provider.Snapshot, err error) {
	err = d.p.call(provides, "direct.Read", req.Type+" "+req.PhysicalID, directAnswers, func() error {
		t := d.c.get(req.Type, req.PhysicalID)
		if t == nil {
			return refusal(provider.KindNotFound, "there is no "+req.PhysicalID)
		}
		out = provider.Snapshot{PhysicalID: t.id, Properties: t.props, Attributes: t.model()}
		return nil
	})
	return orZero(out, err)
}

// plain copies properties into values of the cloud's own.
func plain(props map[string]any) map[string]any {
	out := map[string]any{}
	if err := json.Unmarshal([]byte(encodeJSON(props)), &out); err != nil {
		panic(err) // it was encoded just now
	}
	return out
}

// custom is the handler of custom resources: a request id is carried out once, and an update may answer with
// another physical id, which makes the old one due for deletion.
type custom struct {
	p *process
	c *cloud
}

func (d *custom) once(ctx context.Context, method string, req provider.Request, do func() (*thing, error)) (provider.Progress, error) {
	var out provider.Progress
	err := d.c.write(ctx, d.p, method, "custom "+req.Token, req.LogicalID+" "+req.PhysicalID, func() error {
		if known := d.c.tokens["custom "+req.Token]; known != nil {
			out = provider.Progress{Done: true, PhysicalID: known.id, Attributes: map[string]any{"Out": known.id}}
			return nil
		}
		if isBad(req.Properties, req.Type) {
			return refusal(provider.KindFailed, "the handler does not want it")
		}
		t, err := do()
		if err != nil {
			return err
		}
		d.c.tokens["custom "+req.Token] = &request{id: t.id}
		out = provider.Progress{Done: true, PhysicalID: t.id, Attributes: map[string]any{"Out": t.id}}
		return nil
	})
	return orZero(out, err)
}

// Create implements provider.Provider.
func (d *custom) Create(ctx context.Context, req provider.Request) (provider.Progress, error) {
	return d.once(ctx, "custom.Create", req, func() (*thing, error) {
		t, _ := d.c.make(req.Type, plain(req.Properties), req.Token)
		return t, nil
	})
}

// Update implements provider.Provider.
func (d *custom) Update(ctx context.Context, req provider.Request) (provider.Progress, error) {
	return d.once(ctx, "custom.Update", req, func() (*thing, error) {
		t := d.c.get(req.Type, req.PhysicalID)
		if t == nil || hashed(d.c.w.seed, "another id", req.Token)%3 == 0 {
			// What it does not know it makes anew.
			t, _ = d.c.make(req.Type, plain(req.Properties), req.Token)
			return t, nil
		}
		d.c.change(t, maps.Clone(plain(req.Properties)))
		return t, nil
	})
}

// Delete implements provider.Provider.
func (d *custom) Delete(ctx context.Context, req provider.Request) (provider.Progress, error) {
	req.Properties = nil
	return d.once(ctx, "custom.Delete", req, func() (*thing, error) {
		t := d.c.get(req.Type, req.PhysicalID)
		if t == nil {
			return &thing{id: req.PhysicalID}, nil
		}
		d.c.remove(t)
		return t, nil
	})
}

// Poll implements provider.Provider.
func (d *custom) Poll(context.Context, provider.Request, provider.Handle) (provider.Progress, error) {
	return provider.Progress{}, refusal(provider.KindUnsupported, "there is nothing to poll")
}

// Read implements provider.Provider.
func (d *custom) Read(context.Context, provider.Request) (provider.Snapshot, error) {
	return provider.Snapshot{}, refusal(provider.KindUnsupported, "a custom resource can't be read")
}
