package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/plan"
)

// The objects of a run, all below slipway/runs/{id}/. Each is written once and never changed.

func requestKey(runID string) string      { return "slipway/runs/" + runID + "/request.json" }
func planKey(runID string) string         { return "slipway/runs/" + runID + "/plan.json" }
func rollbackPlanKey(runID string) string { return "slipway/runs/" + runID + "/rollback.json" }
func viewsKey(runID string) string        { return "slipway/runs/" + runID + "/view.json" }
func waveKey(runID string, n int) string {
	return fmt.Sprintf("slipway/runs/%s/waves/%05d.json", runID, n)
}
func decisionKey(runID string, n int) string {
	return fmt.Sprintf("slipway/runs/%s/decisions/%05d.json", runID, n)
}

const templatePrefix = "slipway/templates/"

// TemplateKey is the object that holds a template, by its digest.
func TemplateKey(digest string) string { return templatePrefix + digest + ".json" }

// getJSON reads an object into v. Numbers in untyped members stay json.Number.
func getJSON(ctx context.Context, s objectstore.Store, key string, v any) error {
	obj, err := s.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("reading %s: %w", key, err)
	}
	if err := unmarshal(obj.Body, v); err != nil {
		return fmt.Errorf("reading %s: %w", key, err)
	}
	return nil
}

// putOnce writes an object that is never changed. When one stands already, because this step has been here
// before or a twin was faster, that one is kept and v becomes what it says.
func putOnce[T any](ctx context.Context, s objectstore.Store, key string, v *T) error {
	body, err := marshal(v)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", key, err)
	}
	_, err = s.Put(ctx, key, body, objectstore.Condition{IfNoneMatch: true})
	if errors.Is(err, objectstore.ErrPrecondition) {
		// Decoding into *v itself would leave whatever the object omits.
		var stands T
		if err := getJSON(ctx, s, key, &stands); err != nil {
			return err
		}
		*v = stands
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", key, err)
	}
	return nil
}

// isAbsent reports whether an object does not exist.
func isAbsent(err error) bool { return errors.Is(err, objectstore.ErrNotFound) }

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func unmarshal(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return dec.Decode(v)
}

// decisionRecord is decisions/{n}.json: what Next has decided, and where folding stood.
type decisionRecord struct {
	Decision int  `json:"decision"`
	Step     Step `json:"step"`
	// Folded lists the operations whose results are in the state record, by id and attempt.
	Folded []string `json:"folded"`
	// History estimates the events of the current execution so far.
	History int        `json:"history"`
	Phase   plan.Phase `json:"phase"`
	// Idle counts the waits since something last ended: waits grow with it.
	Idle int `json:"idle"`
	// Waves counts the waves so far.
	Waves int `json:"waves"`
	// Until is when the wait that was decided is over. A scaled clock waits for less than it shows: what was due
	// by then is due all the same.
	Until time.Time `json:"until,omitzero"`
	// Cancelled is who has cut the run short; it stands in the last decision only.
	Cancelled *Cancellation `json:"cancelled,omitempty"`
	// Strikes counts, by operation, the waves that left no trace of it.
	Strikes map[string]int `json:"strikes,omitempty"`
	// Paces holds back the services that have asked to slow down, by their name in resource types.
	Paces map[string]plan.Pace `json:"paces,omitempty"`
}
