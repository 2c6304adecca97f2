package direct

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/slipway-cdk/slipway/pkg/asl"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/runlog/objects"
)

const (
	executionsPrefix = objects.Prefix + "executions/"
	historiesPrefix  = objects.Prefix + "histories/"
	runningPrefix    = objects.Prefix + "running/"
)

// executions is an asl.Store in the state bucket: one object for each execution, which two conditional writes make and
// end, and one that is there while it runs. Everybody sees by them who carries what.
//
// The history of an execution that runs is in the memory of the process that carries it, and becomes an object when the
// execution ends: nobody decides anything by it, and as objects its events would be most of what a run costs. The
// history of an execution whose process has died is therefore lost up to its end.
type executions struct {
	objects objectstore.Store

	mu        sync.Mutex
	histories map[string][]asl.Event // by ARN, of the executions that this process has created and not seen end
}

var _ asl.Store = (*executions)(nil)

// executionDocument keeps the input and output byte for byte, which JSON inside JSON would not.
type executionDocument struct {
	asl.Execution
	RawInput  []byte `json:"rawInput"`
	RawOutput []byte `json:"rawOutput,omitempty"`
	// Mark is that of the call that has written the document.
	Mark string `json:"mark"`
}

func document(e asl.Execution, mark string) executionDocument {
	d := executionDocument{Execution: e, RawInput: e.Input, RawOutput: e.Output, Mark: mark}
	d.Input, d.Output = nil, nil
	return d
}

func (d executionDocument) execution() asl.Execution {
	e := d.Execution
	e.Input, e.Output = d.RawInput, d.RawOutput
	return e
}

func executionKey(arn string) string { return executionsPrefix + url.PathEscape(arn) + ".json" }
func historyKey(arn string) string   { return historiesPrefix + url.PathEscape(arn) + ".json" }
func runningKey(arn string) string   { return runningPrefix + url.PathEscape(arn) }

// Create implements asl.Store. That it runs is noted before it is there, so that no execution runs unseen.
func (s *executions) Create(ctx context.Context, e asl.Execution, first []asl.Event) (asl.Execution, bool, error) {
	existing, created, err := s.create(ctx, e, first)
	if err != nil {
		return asl.Execution{}, false, fmt.Errorf("creating execution %s: %w", e.ARN, err)
	}
	return existing, created, nil
}

func (s *executions) create(ctx context.Context, e asl.Execution, first []asl.Event) (asl.Execution, bool, error) {
	if !continues(first, 0) {
		return asl.Execution{}, false, asl.ErrHistoryGap
	}
	if old, _, err := s.read(ctx, e.ARN); err == nil {
		return old.execution(), false, nil
	} else if !errors.Is(err, asl.ErrNotFound) {
		return asl.Execution{}, false, err
	}
	mark := newMark()
	body, err := encode(document(e, mark))
	if err != nil {
		return asl.Execution{}, false, err
	}
	if _, err := s.objects.Put(ctx, runningKey(e.ARN), nil, objectstore.Condition{}); err != nil {
		return asl.Execution{}, false, err
	}
	_, err = s.objects.Put(ctx, executionKey(e.ARN), body, objectstore.Condition{IfNoneMatch: true})
	if errors.Is(err, objectstore.ErrPrecondition) {
		old, _, err := s.read(ctx, e.ARN)
		if err != nil || old.Mark != mark {
			return old.execution(), false, err
		}
		// It is this call's own, whose answer was lost.
	} else if err != nil {
		return asl.Execution{}, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.histories == nil {
		s.histories = map[string][]asl.Event{}
	}
	s.histories[e.ARN] = slices.Clone(first)
	return e, true, nil
}

// continues reports whether events have the ids that follow last.
func continues(events []asl.Event, last int64) bool {
	for i, ev := range events {
		if ev.ID != last+int64(i)+1 {
			return false
		}
	}
	return true
}

func (s *executions) read(ctx context.Context, arn string) (executionDocument, string, error) {
	obj, err := s.objects.Get(ctx, executionKey(arn))
	if errors.Is(err, objectstore.ErrNotFound) {
		return executionDocument{}, "", asl.ErrNotFound
	}
	if err != nil {
		return executionDocument{}, "", err
	}
	var d executionDocument
	if err := json.Unmarshal(obj.Body, &d); err != nil {
		return executionDocument{}, "", fmt.Errorf("decoding object %q: %w", obj.Key, err)
	}
	return d, obj.ETag, nil
}

// Get implements asl.Store.
func (s *executions) Get(ctx context.Context, arn string) (asl.Execution, error) {
	d, _, err := s.read(ctx, arn)
	if err != nil {
		return asl.Execution{}, fmt.Errorf("execution %s: %w", arn, err)
	}
	return d.execution(), nil
}

// Finish implements asl.Store.
func (s *executions) Finish(ctx context.Context, arn string, o asl.Outcome, last []asl.Event) (asl.Execution, error) {
	e, err := s.finish(ctx, arn, o, last)
	if err != nil {
		if !errors.Is(err, asl.ErrNotRunning) {
			e = asl.Execution{}
		}
		return e, fmt.Errorf("finishing execution %s: %w", arn, err)
	}
	return e, nil
}

func (s *executions) finish(ctx context.Context, arn string, o asl.Outcome, last []asl.Event) (asl.Execution, error) {
	d, etag, err := s.read(ctx, arn)
	if err != nil {
		return asl.Execution{}, err
	}
	if d.Status != asl.StatusRunning {
		s.forget(arn)
		return d.execution(), asl.ErrNotRunning
	}
	s.mu.Lock()
	history := slices.Clone(s.histories[arn]) // of another process's execution only the end is known
	s.mu.Unlock()
	end := asl.Numbered(last, int64(len(history)))
	if !continues(end, int64(len(history))) {
		return asl.Execution{}, asl.ErrHistoryGap
	}
	e := d.execution()
	e.Status, e.Output, e.Error, e.Cause, e.StoppedAt = o.Status, o.Output, o.Error, o.Cause, o.StoppedAt
	mark := newMark()
	body, err := encode(document(e, mark))
	if err != nil {
		return asl.Execution{}, err
	}
	told, err := encode(append(history, end...))
	if err != nil {
		return asl.Execution{}, err
	}
	_, err = s.objects.Put(ctx, executionKey(arn), body, objectstore.Condition{IfMatch: etag})
	if errors.Is(err, objectstore.ErrPrecondition) {
		now, _, readErr := s.read(ctx, arn)
		switch {
		case readErr != nil:
			return asl.Execution{}, readErr
		case now.Mark != mark:
			s.forget(arn)
			return now.execution(), asl.ErrNotRunning
		}
		err = nil
	}
	if err != nil {
		return asl.Execution{}, err
	}
	// The end stands. What follows is not decided by, and the note of who comes next finds it ended.
	_, _ = s.objects.Put(ctx, historyKey(arn), told, objectstore.Condition{})
	_ = s.objects.Delete(ctx, runningKey(arn), objectstore.Condition{})
	s.forget(arn)
	return e, nil
}

func (s *executions) forget(arn string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.histories, arn)
}

// AppendHistory implements asl.Store.
func (s *executions) AppendHistory(ctx context.Context, arn string, events []asl.Event) error {
	s.mu.Lock()
	history, ours := s.histories[arn]
	if ours && continues(events, int64(len(history))) {
		s.histories[arn] = append(history, events...)
		s.mu.Unlock()
		return nil
	}
	s.mu.Unlock()
	e, err := s.Get(ctx, arn)
	switch {
	case err != nil:
	case e.Status != asl.StatusRunning:
		err = asl.ErrNotRunning
	default:
		err = asl.ErrHistoryGap
	}
	return fmt.Errorf("history of execution %s: %w", arn, err)
}

// History implements asl.Store.
func (s *executions) History(ctx context.Context, arn string, after int64) ([]asl.Event, error) {
	s.mu.Lock()
	history, ours := s.histories[arn]
	history = slices.Clone(history)
	s.mu.Unlock()
	if !ours {
		if _, err := s.Get(ctx, arn); err != nil {
			return nil, err
		}
		obj, err := s.objects.Get(ctx, historyKey(arn))
		if err != nil && !errors.Is(err, objectstore.ErrNotFound) {
			return nil, fmt.Errorf("history of execution %s: %w", arn, err)
		}
		if err == nil {
			if err := json.Unmarshal(obj.Body, &history); err != nil {
				return nil, fmt.Errorf("history of execution %s: %w", arn, err)
			}
		}
	}
	return slices.DeleteFunc(history, func(ev asl.Event) bool { return ev.ID <= after }), nil
}

// List implements asl.Store. To list those that run costs as much as there are of them.
func (s *executions) List(ctx context.Context, q asl.Query) ([]asl.Execution, error) {
	list, err := s.list(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("listing executions: %w", err)
	}
	return list, nil
}

func (s *executions) list(ctx context.Context, q asl.Query) ([]asl.Execution, error) {
	prefix := executionsPrefix
	if q.Status == asl.StatusRunning {
		prefix = runningPrefix
	}
	infos, err := s.objects.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	out := []asl.Execution{}
	for _, info := range infos {
		arn, err := url.PathUnescape(strings.TrimSuffix(strings.TrimPrefix(info.Key, prefix), ".json"))
		if err != nil {
			return nil, fmt.Errorf("object %q is no execution: %w", info.Key, err)
		}
		d, _, err := s.read(ctx, arn)
		if errors.Is(err, asl.ErrNotFound) {
			continue // it is about to be made, or whoever wanted to is gone
		}
		if err != nil {
			return nil, fmt.Errorf("execution %s: %w", arn, err)
		}
		e := d.execution()
		if prefix == runningPrefix && e.Status != asl.StatusRunning {
			if err := s.objects.Delete(ctx, info.Key, objectstore.Condition{}); err != nil {
				return nil, err
			}
		}
		if (q.Machine == "" || q.Machine == e.Machine) && (q.Status == "" || q.Status == e.Status) && (q.Holder == "" || q.Holder == e.Holder) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b asl.Execution) int {
		return cmp.Or(b.StartedAt.Compare(a.StartedAt), cmp.Compare(a.ARN, b.ARN))
	})
	return out, nil
}

func newMark() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// encode renders JSON without escaping HTML.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
