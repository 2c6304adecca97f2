// Package objects is the run log of --direct: objects in the bucket that also holds the stacks' records, so that
// everybody who may write there can follow a run and settle a dead one, whichever machine it has run on.
//
//	slipway/log/runs/{run id}/run.json                  the run's header, and which record each operation has
//	slipway/log/runs/{run id}/ops/{op id}~{mark}.json   one version of an operation's record
//	slipway/log/runs/{run id}/events/{event id}.json    one event
//	slipway/log/list/{when}~{run id}~…                  that there is such a run, when it was asked for and on what
//	slipway/log/open/{when}~{run id}~…                  the same, until the run is closed
//	slipway/heads/{account}/{region}/{stack}.json       the run that is on the stack now
//
// # The fence
//
// An object store has no transaction over two objects, and an intent must be refused once the run's status or epoch
// has changed. So what decides is one object for each run: it holds the header and, for each operation, the version
// and the name of the object with its record. PutOp writes the record first, under a name of its own, where nobody
// sees it; then it replaces the run's object under If-Match with one that names it. Whoever fences the run replaces
// the same object, so one of the two comes first: an intent that comes second is refused, and one that came first is
// seen by whoever reads after the fence. There is no third case to repair, and a process that dies between the two
// writes has left an object without a name.
//
// The records are not in the run's object because that is written again with every step: it stays at some ninety bytes
// an operation, whatever the resources look like. Writers of one process do not race each other for it: what has
// gathered while a write was under way goes into the next one together (desk.go).
//
// Nothing here is deleted but the entry of an open run. What is below slipway/log may be expired by age, by a
// lifecycle rule of the bucket, once no run is as old as that and still open.
package objects

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// Prefix is what the keys of everything begin with that may be expired by age.
const Prefix = "slipway/log/"

const (
	runsPrefix  = Prefix + "runs/"
	listPrefix  = Prefix + "list/"
	openPrefix  = Prefix + "open/"
	headsPrefix = "slipway/heads/"
)

// parallel is how many objects one call reads or writes at once.
const parallel = 16

// Store is a runlog.Store in an object store. It is safe for concurrent use and must not be copied.
type Store struct {
	Objects objectstore.Store
	// Clock is what repeats wait on. Nil is real time.
	Clock clock.Clock

	mu    sync.Mutex
	desks map[string]*desk // by run
	kept  memory
}

var _ runlog.Store = (*Store)(nil)

// runDocument is the one object of a run that decides.
type runDocument struct {
	Version int           `json:"v"` // of this format
	Header  runlog.Header `json:"header"`
	// HeaderVersion is the Version of Header, HeaderMark the mark of the call that has written it.
	HeaderVersion int64  `json:"headerVersion"`
	HeaderMark    string `json:"headerMark"`
	// Ops are the operations by id.
	Ops map[string]opEntry `json:"ops,omitempty"`
}

// documentVersion grows when a member changes its meaning.
const documentVersion = 1

// opEntry says which record an operation has.
type opEntry struct {
	Version int64 `json:"v"`
	// Mark is that of the call that has written the record, and part of its key.
	Mark string `json:"mark"`
}

func runKey(runID string) string { return runsPrefix + escape(runID) + "/run.json" }

func headKey(s runlog.StackRef) string {
	return headsPrefix + escape(s.Account) + "/" + escape(s.Region) + "/" + escape(s.Name) + ".json"
}

// CreateRun implements runlog.Store. The run is listed before it is there: a listed run that is not there is passed
// over, one that is there and not listed would be found by nobody.
func (s *Store) CreateRun(ctx context.Context, h runlog.Header) (runlog.Header, error) {
	if h.RunID == "" {
		return runlog.Header{}, errors.New("creating a run: it has no run id")
	}
	mark := newMark()
	h.Version = 1
	body, err := encode(runDocument{Version: documentVersion, Header: h, HeaderVersion: 1, HeaderMark: mark})
	if err == nil {
		err = s.enlist(ctx, h)
	}
	if err != nil {
		return runlog.Header{}, fmt.Errorf("creating run %s: %w", h.RunID, err)
	}
	_, err = s.Objects.Put(ctx, runKey(h.RunID), body, objectstore.Condition{IfNoneMatch: true})
	if errors.Is(err, objectstore.ErrPrecondition) {
		// It may be this call's own, whose answer was lost.
		doc, _, readErr := s.read(ctx, h.RunID)
		switch {
		case readErr != nil:
			err = readErr
		case doc.HeaderMark == mark:
			err = nil
		default:
			err = runlog.ErrExists
		}
	}
	if err != nil {
		return runlog.Header{}, fmt.Errorf("creating run %s: %w", h.RunID, err)
	}
	return h, nil
}

// read reads the object of a run as it stands, or returns runlog.ErrNotFound.
func (s *Store) read(ctx context.Context, runID string) (runDocument, string, error) {
	obj, err := s.Objects.Get(ctx, runKey(runID))
	if errors.Is(err, objectstore.ErrNotFound) {
		return runDocument{}, "", runlog.ErrNotFound
	}
	if err != nil {
		return runDocument{}, "", err
	}
	var doc runDocument
	if err := json.Unmarshal(obj.Body, &doc); err != nil {
		return runDocument{}, "", fmt.Errorf("decoding object %q: %w", obj.Key, err)
	}
	if doc.Version != documentVersion {
		return runDocument{}, "", fmt.Errorf("object %q has version %d of its format, and this release reads %d: use a newer one", obj.Key, doc.Version, documentVersion)
	}
	doc.Header.Version = doc.HeaderVersion
	return doc, obj.ETag, nil
}

// Header implements runlog.Store.
func (s *Store) Header(ctx context.Context, runID string) (runlog.Header, error) {
	doc, _, err := s.read(ctx, runID)
	if err != nil {
		return runlog.Header{}, fmt.Errorf("reading run %s: %w", runID, err)
	}
	return doc.Header, nil
}

// UpdateHeader implements runlog.Store.
func (s *Store) UpdateHeader(ctx context.Context, h runlog.Header) (runlog.Header, error) {
	if h.RunID == "" {
		return runlog.Header{}, errors.New("updating a run: it has no run id")
	}
	read, mark := h.Version, newMark()
	h.Version = read + 1
	err := s.desk(h.RunID).hand(ctx, func(doc *runDocument) (done bool, err error) {
		switch {
		case doc.HeaderMark == mark:
			return true, nil
		case doc.HeaderVersion != read:
			return false, runlog.ErrConflict
		}
		doc.Header, doc.HeaderVersion, doc.HeaderMark = h, h.Version, mark
		return false, nil
	})
	if err == nil && h.Status == runlog.StatusClosed {
		s.dismiss(h.RunID)
		s.unlistOpen(ctx, h)
	}
	if err != nil {
		return runlog.Header{}, fmt.Errorf("updating run %s: %w", h.RunID, err)
	}
	return h, nil
}

// headDocument is the object of a stack.
type headDocument struct {
	RunID string `json:"runId"`
}

// SetHead implements runlog.Store.
func (s *Store) SetHead(ctx context.Context, stack runlog.StackRef, runID string) error {
	body, err := encode(headDocument{RunID: runID})
	if err == nil {
		_, err = s.Objects.Put(ctx, headKey(stack), body, objectstore.Condition{})
	}
	if err != nil {
		return fmt.Errorf("recording run %s as the head of stack %s: %w", runID, stack.Name, err)
	}
	return nil
}

// Head implements runlog.Store.
func (s *Store) Head(ctx context.Context, stack runlog.StackRef) (string, error) {
	var head headDocument
	obj, err := s.Objects.Get(ctx, headKey(stack))
	if errors.Is(err, objectstore.ErrNotFound) {
		return "", nil
	}
	if err == nil {
		err = json.Unmarshal(obj.Body, &head)
	}
	if err != nil {
		return "", fmt.Errorf("reading the head of stack %s: %w", stack.Name, err)
	}
	return head.RunID, nil
}

func (s *Store) clock() clock.Clock {
	if s.Clock == nil {
		return clock.Real{}
	}
	return s.Clock
}

// newMark tells what one call has written from what any other has.
func newMark() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// encode renders a document without escaping HTML.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."

// escape makes a part of a key: what is not plain becomes %XX. "~" and "/" part the parts.
func escape(part string) string {
	var b strings.Builder
	for i := range len(part) {
		if c := part[i]; strings.IndexByte(plain, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// unescape is the inverse of escape.
func unescape(part string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(part); i++ {
		if part[i] != '%' {
			b.WriteByte(part[i])
			continue
		}
		if i+2 >= len(part) {
			return "", fmt.Errorf("%q is no part of a key", part)
		}
		c, err := hex.DecodeString(part[i+1 : i+3])
		if err != nil {
			return "", fmt.Errorf("%q is no part of a key", part)
		}
		b.Write(c)
		i += 2
	}
	return b.String(), nil
}
