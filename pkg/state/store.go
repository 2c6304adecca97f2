package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
)

// DefaultPrefix is the key prefix of everything that cdkd and Slipway share.
const DefaultPrefix = "cdkd"

// Store reads and writes the files of every stack. It is safe for concurrent use.
type Store struct {
	Objects objectstore.Store
	// Prefix is DefaultPrefix when empty.
	Prefix string
	// Clock is real time when nil.
	Clock clock.Clock
}

// Ref names one stack's record.
type Ref struct {
	Stack  string
	Region string
}

// Load returns the record of a stack and its ETag, or ErrNotFound. A damaged record is a *DamagedError, one
// of a newer format a *VersionError. Where only a version 1 record stands, and it is of this region, that is
// returned with the ETag "" and its LegacyETag set (reference §1.2).
func (s *Store) Load(ctx context.Context, stack, region string) (*Record, string, error) {
	data, etag, legacy, err := s.read(ctx, stack, region)
	if err != nil {
		return nil, "", err
	}
	rec, err := Decode(data)
	if err != nil {
		return nil, "", fmt.Errorf("reading the state of stack %s in %s: %w", stack, Region(region), inStack(err, stack))
	}
	own(rec, stack, region)
	if legacy {
		rec.LegacyETag, etag = etag, ""
	}
	return rec, etag, nil
}

// LoadLenient is Load for a preview: see DecodeLenient.
func (s *Store) LoadLenient(ctx context.Context, stack, region string) (*Record, string, diag.Diagnostics, error) {
	data, etag, legacy, err := s.read(ctx, stack, region)
	if err != nil {
		return nil, "", nil, err
	}
	rec, warnings, err := DecodeLenient(data)
	if err != nil {
		return nil, "", nil, fmt.Errorf("reading the state of stack %s in %s: %w", stack, Region(region), inStack(err, stack))
	}
	own(rec, stack, region)
	if legacy {
		rec.LegacyETag, etag = etag, ""
	}
	return rec, etag, named(warnings, stack), nil
}

// own makes the record say what its key says, as cdkd does at every save: Save must never lead elsewhere.
func own(rec *Record, stack, region string) {
	rec.StackName, rec.Region = stack, Region(region)
}

// inStack reports what is wrong under the name of the key, whatever name stands in the file.
func inStack(err error, stack string) error {
	var d *DamagedError
	if errors.As(err, &d) {
		return &DamagedError{Diagnostics: named(d.Diagnostics, stack)}
	}
	var v *VersionError
	if errors.As(err, &v) {
		same := *v
		same.Stack = Printable(stack)
		return &same
	}
	return err
}

func named(ds diag.Diagnostics, stack string) diag.Diagnostics {
	out := make(diag.Diagnostics, len(ds))
	for i, d := range ds {
		d.Stack = Printable(stack)
		out[i] = d
	}
	return out
}

func (s *Store) read(ctx context.Context, stack, region string) (data []byte, etag string, legacy bool, err error) {
	key := s.StateKey(stack, region)
	obj, err := s.Objects.Get(ctx, key)
	if err == nil {
		return obj.Body, obj.ETag, false, nil
	}
	if !errors.Is(err, objectstore.ErrNotFound) {
		return nil, "", false, fmt.Errorf("reading the state of stack %s in %s: %w", stack, Region(region), err)
	}
	obj, err = s.Objects.Get(ctx, s.legacyStateKey(stack))
	switch {
	case errors.Is(err, objectstore.ErrNotFound):
		return nil, "", false, fmt.Errorf("state of stack %s in %s: %w", stack, Region(region), ErrNotFound)
	case err != nil:
		return nil, "", false, fmt.Errorf("reading the state of stack %s in %s: %w", stack, Region(region), err)
	}
	if of := legacyRegion(obj.Body); of != "" && of != Region(region) {
		return nil, "", false, fmt.Errorf("state of stack %s in %s: %w", stack, Region(region), ErrNotFound)
	}
	return obj.Body, obj.ETag, true, nil
}

// legacyRegion is the region that a version 1 body names, or "".
func legacyRegion(body []byte) string {
	var head struct {
		Region any `json:"region"`
	}
	if unmarshal(body, &head) != nil {
		return ""
	}
	r, _ := head.Region.(string)
	return Region(r)
}

// Save writes a record and returns its new ETag. etag is that of the record which was read; "" means that
// none stood there. It sets rec's Version, LastModified and Region. The write is always conditional: if
// somebody else has written in between it returns ErrModified, and if what stands there already says the
// same it was this write's own lost answer, or a repetition, and succeeds.
func (s *Store) Save(ctx context.Context, rec *Record, etag string) (string, error) {
	newETag, _, err := s.save(ctx, rec, etag)
	return newETag, err
}

// save is Save. stood tells that what stands already says the same, and nothing was written.
func (s *Store) save(ctx context.Context, rec *Record, etag string) (newETag string, stood bool, err error) {
	rec.Version, rec.LastModified, rec.Region = SchemaVersion, s.now().UnixMilli(), Region(rec.Region)
	if rec.StackName == "" || rec.Region == "" {
		return "", false, errors.New("saving a state record: it names no stack or no region")
	}
	body, err := rec.Encode()
	if err != nil {
		return "", false, err
	}
	same := func(stands []byte) bool { return sameRecord(stands, rec) }
	newETag, stood, err = s.putOrFind(ctx, s.StateKey(rec.StackName, rec.Region), body, etag, same)
	if err != nil {
		return "", false, fmt.Errorf("saving the state of stack %s in %s: %w", rec.StackName, rec.Region, err)
	}
	if rec.LegacyETag != "" {
		// The new key hides the old one from now on; a failure here leaves a file that nobody reads.
		_ = s.Objects.Delete(ctx, s.legacyStateKey(rec.StackName), objectstore.Condition{IfMatch: rec.LegacyETag})
		rec.LegacyETag = ""
	}
	return newETag, stood, nil
}

// put writes conditionally, "" meaning that nothing may stand there. A refusal is compared with what stands:
// the first attempt of a repeated request may have succeeded.
func (s *Store) put(ctx context.Context, key string, body []byte, etag string, same func([]byte) bool) (string, error) {
	newETag, _, err := s.putOrFind(ctx, key, body, etag, same)
	return newETag, err
}

// putOrFind is put. found tells that it stood there already.
func (s *Store) putOrFind(ctx context.Context, key string, body []byte, etag string, same func([]byte) bool) (newETag string, found bool, err error) {
	newETag, err = s.Objects.Put(ctx, key, body, onlyIf(etag))
	if err == nil {
		return newETag, false, nil
	}
	if errors.Is(err, objectstore.ErrNotFound) {
		return "", false, fmt.Errorf("it is gone: %w", ErrModified)
	}
	if !errors.Is(err, objectstore.ErrPrecondition) {
		return "", false, err
	}
	obj, err := s.Objects.Get(ctx, key)
	switch {
	case errors.Is(err, objectstore.ErrNotFound):
		return "", false, fmt.Errorf("it is gone: %w", ErrModified)
	case err != nil:
		return "", false, err
	case bytes.Equal(obj.Body, body) || same != nil && same(obj.Body):
		return obj.ETag, true, nil
	}
	return "", false, ErrModified
}

func onlyIf(etag string) objectstore.Condition {
	if etag == "" {
		return objectstore.Condition{IfNoneMatch: true}
	}
	return objectstore.Condition{IfMatch: etag}
}

func sameRecord(stands []byte, rec *Record) bool {
	other, err := Decode(stands)
	if err != nil {
		return false
	}
	a, errA := Digest(other)
	b, errB := Digest(rec)
	return errA == nil && errB == nil && a == b
}

// Delete removes a stack's record if its ETag is still the given one, else it returns ErrModified. Nothing
// there is success. A version 1 record of the same stack and region goes with it: it would come back to
// life. With etag "" only that one is removed.
func (s *Store) Delete(ctx context.Context, stack, region, etag string) error {
	if etag != "" {
		err := s.Objects.Delete(ctx, s.StateKey(stack, region), objectstore.Condition{IfMatch: etag})
		if errors.Is(err, objectstore.ErrPrecondition) {
			err = ErrModified
		}
		if err != nil && !errors.Is(err, objectstore.ErrNotFound) {
			return fmt.Errorf("deleting the state of stack %s in %s: %w", stack, Region(region), err)
		}
	}
	obj, err := s.Objects.Get(ctx, s.legacyStateKey(stack))
	if err == nil {
		if of := legacyRegion(obj.Body); of != "" && of != Region(region) {
			return nil
		}
		err = s.Objects.Delete(ctx, s.legacyStateKey(stack), objectstore.Condition{IfMatch: obj.ETag})
	}
	if errors.Is(err, objectstore.ErrPrecondition) {
		err = ErrModified
	}
	if err != nil && !errors.Is(err, objectstore.ErrNotFound) {
		return fmt.Errorf("deleting the version 1 state of stack %s: %w", stack, err)
	}
	return nil
}

// List names every stack that has a record, ordered by name, then region. Where only a version 1 record
// stands its body is read for the region, which is "" when it names none.
func (s *Store) List(ctx context.Context) ([]Ref, error) {
	infos, err := s.Objects.List(ctx, s.prefix()+"/")
	if err != nil {
		return nil, fmt.Errorf("listing the state records: %w", err)
	}
	var refs []Ref
	known := map[Ref]bool{}
	var legacy []string
	for _, info := range infos {
		rest, ok := strings.CutSuffix(strings.TrimPrefix(info.Key, s.prefix()+"/"), "/state.json")
		if !ok {
			continue
		}
		switch parts := strings.Split(rest, "/"); {
		case len(parts) == 2 && parts[0] != "" && parts[1] != "":
			ref := Ref{Stack: parts[0], Region: parts[1]}
			known[ref] = true
			refs = append(refs, ref)
		case len(parts) == 1 && parts[0] != "":
			legacy = append(legacy, parts[0])
		}
	}
	for _, stack := range legacy {
		obj, err := s.Objects.Get(ctx, s.legacyStateKey(stack))
		if errors.Is(err, objectstore.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing the state records: reading the version 1 record of stack %s: %w", stack, err)
		}
		if ref := (Ref{Stack: stack, Region: legacyRegion(obj.Body)}); !known[ref] {
			refs = append(refs, ref)
		}
	}
	sort.Slice(refs, func(i, j int) bool {
		if refs[i].Stack != refs[j].Stack {
			return refs[i].Stack < refs[j].Stack
		}
		return refs[i].Region < refs[j].Region
	})
	return refs, nil
}
