package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"golang.org/x/sync/errgroup"
)

// IndexVersion is the version of the exports index and of the deployments index. A higher one is refused.
const IndexVersion = 1

// ExportsIndex is exports.json (reference §1.5, §0.1): every output, by name, of the stacks that were
// deployed by commands of one region. It is a cache of what the records say and nothing is decided by it
// alone.
type ExportsIndex struct {
	IndexVersion int               `json:"indexVersion"`
	Region       string            `json:"region"`
	Exports      map[string]Export `json:"exports"`
	// LastModified is Unix milliseconds.
	LastModified int64                      `json:"lastModified"`
	Extra        map[string]json.RawMessage `json:"-"`
}

// Export is one output and the stack that it is of.
type Export struct {
	// Value is nil where the producer could not resolve the output: cdkd then writes no value.
	Value          any                        `json:"value,omitzero"`
	ProducerStack  string                     `json:"producerStack"`
	ProducerRegion string                     `json:"producerRegion"`
	Extra          map[string]json.RawMessage `json:"-"`
}

// Importer is a stack whose last deploy has read an export of another one.
type Importer struct {
	Stack      string
	Region     string
	ExportName string
}

// DecodeExports reads an exports index.
func DecodeExports(data []byte) (*ExportsIndex, error) {
	x := &ExportsIndex{}
	if err := versioned(data, x, "exports index", "", "indexVersion"); err != nil {
		return nil, err
	}
	if x.Exports == nil {
		return nil, damagedFile("exports index", "", errors.New("it has no exports"))
	}
	return x, nil
}

// Encode renders the index as cdkd does.
func (x *ExportsIndex) Encode() ([]byte, error) { return pretty(x) }

const (
	exportAttempts  = 5
	exportBackoff   = 100 * time.Millisecond
	exportBackoffTo = time.Second
	readsAtOnce     = 16
)

// LoadExports returns the exports index of a region and its ETag. A missing or damaged one is rebuilt from
// the records of that region, in memory: the ETag is then that of the damaged file, or "".
func (s *Store) LoadExports(ctx context.Context, region string) (*ExportsIndex, string, error) {
	obj, err := s.Objects.Get(ctx, s.ExportsKey(region))
	if err != nil && !errors.Is(err, objectstore.ErrNotFound) {
		return nil, "", fmt.Errorf("reading the exports index of %s: %w", Region(region), err)
	}
	if err == nil {
		x, err := DecodeExports(obj.Body)
		if err == nil {
			return x, obj.ETag, nil
		}
		if !IsDamaged(err) {
			return nil, "", fmt.Errorf("reading the exports index of %s: %w", Region(region), err)
		}
	}
	x := &ExportsIndex{IndexVersion: IndexVersion, Region: Region(region), Exports: map[string]Export{}}
	records, err := s.scan(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("rebuilding the exports index of %s: %w", Region(region), err)
	}
	for _, r := range records {
		if r.ref.Region != x.Region || r.rec == nil {
			continue
		}
		for name, value := range r.rec.Outputs {
			x.Exports[name] = Export{Value: value, ProducerStack: r.ref.Stack, ProducerRegion: r.ref.Region}
		}
	}
	return x, obj.ETag, nil
}

// UpdateExports makes the index of indexRegion, the region of the command that runs (reference §0.1), say
// exactly outputs of the stack; nil outputs take the stack out. It does not write when nothing changes. A
// concurrent update is merged, in up to five attempts. The index is a cache: a caller warns about an error
// and goes on.
func (s *Store) UpdateExports(ctx context.Context, indexRegion, stack, region string, outputs map[string]any) error {
	return s.changeExports(ctx, indexRegion, func(x *ExportsIndex) {
		for name, e := range x.Exports {
			if _, stays := outputs[name]; !stays && e.ProducerStack == stack && Region(e.ProducerRegion) == Region(region) {
				delete(x.Exports, name)
			}
		}
		for name, value := range outputs {
			x.Exports[name] = Export{Value: value, ProducerStack: stack, ProducerRegion: Region(region)}
		}
	})
}

func (s *Store) changeExports(ctx context.Context, region string, change func(*ExportsIndex)) error {
	wait := exportBackoff
	var refused error
	for attempt := range exportAttempts {
		if attempt > 0 {
			if err := s.clock().Sleep(ctx, wait); err != nil {
				return fmt.Errorf("updating the exports index of %s: %w", Region(region), err)
			}
			wait = min(2*wait, exportBackoffTo)
		}
		x, etag, err := s.LoadExports(ctx, region)
		if err != nil {
			return err
		}
		before, err := compact(x.Exports)
		if err != nil {
			return fmt.Errorf("updating the exports index of %s: %w", Region(region), err)
		}
		change(x)
		after, err := compact(x.Exports)
		if err != nil {
			return fmt.Errorf("updating the exports index of %s: %w", Region(region), err)
		}
		if string(before) == string(after) && etag != "" {
			return nil
		}
		x.LastModified = s.now().UnixMilli()
		body, err := x.Encode()
		if err != nil {
			return fmt.Errorf("updating the exports index of %s: %w", Region(region), err)
		}
		_, refused = s.Objects.Put(ctx, s.ExportsKey(region), body, onlyIf(etag))
		if refused == nil {
			return nil
		}
		if !errors.Is(refused, objectstore.ErrPrecondition) && !errors.Is(refused, objectstore.ErrNotFound) {
			break
		}
	}
	return fmt.Errorf("updating the exports index of %s: %w", Region(region), refused)
}

// LookupExport finds the stack that has an output of this name, for Fn::ImportValue, not counting self. The
// index of indexRegion is only a hint: its answer is checked against the producer's record, and where it
// has none the records of every region are searched, those of indexRegion first, and the index is
// corrected. ErrNotFound: no record has it.
func (s *Store) LookupExport(ctx context.Context, indexRegion, name string, self Ref) (Export, error) {
	self.Region = Region(self.Region)
	if x, _, err := s.LoadExports(ctx, indexRegion); err == nil {
		if e, ok := x.Exports[name]; ok && (Ref{e.ProducerStack, Region(e.ProducerRegion)}) != self {
			if rec, _, _, err := s.LoadLenient(ctx, e.ProducerStack, e.ProducerRegion); err == nil {
				if value, ok := rec.Outputs[name]; ok {
					e.Value = value
					return e, nil
				}
			}
		}
	}
	records, err := s.scan(ctx)
	if err != nil {
		return Export{}, fmt.Errorf("looking up export %s: %w", Printable(name), err)
	}
	sort.SliceStable(records, func(i, j int) bool {
		return records[i].ref.Region == Region(indexRegion) && records[j].ref.Region != Region(indexRegion)
	})
	var unread error
	for _, r := range records {
		if r.err != nil {
			unread = r.err
		}
		if r.rec == nil || r.ref == self {
			continue
		}
		value, ok := r.rec.Outputs[name]
		if !ok {
			continue
		}
		e := Export{Value: value, ProducerStack: r.ref.Stack, ProducerRegion: r.ref.Region}
		// Best effort: the answer does not depend on it.
		_ = s.changeExports(ctx, indexRegion, func(x *ExportsIndex) { x.Exports[name] = e })
		return e, nil
	}
	if unread != nil {
		return Export{}, fmt.Errorf("export %s was not found, and not every record could be read: %w", Printable(name), unread)
	}
	return Export{}, fmt.Errorf("export %s: %w", Printable(name), ErrNotFound)
}

// Importers lists the stacks whose last deploy has read one of the named exports of a stack; with no names,
// any of its exports. It reads every record, since a producer must not vanish under a consumer because a
// cache was stale (reference §7.8): a record whose imports cannot be read is an error.
func (s *Store) Importers(ctx context.Context, stack, region string, exportNames []string) ([]Importer, error) {
	records, err := s.scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("searching the importers of stack %s: %w", stack, err)
	}
	wanted := map[string]bool{}
	for _, n := range exportNames {
		wanted[n] = true
	}
	var out []Importer
	for _, r := range records {
		if r.ref == (Ref{stack, Region(region)}) {
			continue
		}
		if r.rec == nil || r.importsUnread {
			return nil, fmt.Errorf("searching the importers of stack %s: the imports of stack %s in %s cannot be read: %w",
				stack, r.ref.Stack, r.ref.Region, r.err)
		}
		for _, i := range r.rec.Imports {
			if i.SourceStack == stack && Region(i.SourceRegion) == Region(region) && (len(wanted) == 0 || wanted[i.ExportName]) {
				out = append(out, Importer{Stack: r.ref.Stack, Region: r.ref.Region, ExportName: i.ExportName})
			}
		}
	}
	return out, nil
}

// scanned is one record as a search sees it: err says what is wrong with it, rec is what can be read.
type scanned struct {
	ref           Ref
	rec           *Record
	err           error
	importsUnread bool
}

// scan reads every record, in the order of List. Records that vanish meanwhile are left out.
func (s *Store) scan(ctx context.Context) ([]scanned, error) {
	refs, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]scanned, len(refs))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readsAtOnce)
	for i, ref := range refs {
		g.Go(func() error {
			rec, _, found, err := s.LoadLenient(ctx, ref.Stack, ref.Region)
			var damaged *DamagedError
			var version *VersionError
			switch {
			case err == nil, errors.Is(err, ErrNotFound), errors.As(err, &damaged), errors.As(err, &version):
			default:
				return err
			}
			all[i] = scanned{ref: ref, rec: rec, err: err}
			for k := range found {
				found[k].Severity = diag.Error
				if d := found[k]; d.Path == "imports" || strings.HasPrefix(d.Path, "imports.") {
					all[i].importsUnread = true
				}
			}
			if len(found) > 0 {
				all[i].err = &DamagedError{Diagnostics: found}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	kept := all[:0]
	for _, r := range all {
		if !errors.Is(r.err, ErrNotFound) {
			kept = append(kept, r)
		}
	}
	return kept, nil
}
