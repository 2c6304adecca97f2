package objects

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// lastSecond is the end of the time that an entry can tell of, in the year 2286: entries count down to it, so that the
// newest run is listed first.
const lastSecond = 9_999_999_999

// entryOf is the name of a run in the lists: all that a filter asks for, so that nothing has to be read to leave a run
// out.
func entryOf(h runlog.Header) string {
	left := time.Unix(lastSecond, 0).Sub(h.CreatedAt)
	parts := []string{fmt.Sprintf("%019d", max(left, 0)), h.RunID, h.Root, h.Stack.Account, h.Stack.Region, h.Stack.Name}
	for i, p := range parts {
		parts[i] = escape(p)
	}
	return strings.Join(parts, "~")
}

// listed is a run as its entry tells of it.
type listed struct {
	runID, root string
	stack       runlog.StackRef
	key         string
}

func readEntry(prefix, key string) (listed, error) {
	parts := strings.Split(strings.TrimPrefix(key, prefix), "~")
	if len(parts) != 6 {
		return listed{}, fmt.Errorf("object %q is no entry of a list of runs", key)
	}
	for i := range parts {
		var err error
		if parts[i], err = unescape(parts[i]); err != nil {
			return listed{}, err
		}
	}
	return listed{
		runID: parts[1], root: parts[2], key: key,
		stack: runlog.StackRef{Account: parts[3], Region: parts[4], Name: parts[5]},
	}, nil
}

func (l listed) matches(f runlog.Filter) bool {
	is := func(want, got string) bool { return want == "" || want == got }
	return is(f.Root, l.root) && is(f.Stack.Account, l.stack.Account) && is(f.Stack.Region, l.stack.Region) && is(f.Stack.Name, l.stack.Name)
}

// enlist makes the entries of a run that is about to be created.
func (s *Store) enlist(ctx context.Context, h runlog.Header) error {
	entry := entryOf(h)
	group, ctx := errgroup.WithContext(ctx)
	for _, prefix := range []string{listPrefix, openPrefix} {
		if prefix == openPrefix && h.Status == runlog.StatusClosed {
			continue
		}
		group.Go(func() error {
			_, err := s.Objects.Put(ctx, prefix+entry, nil, objectstore.Condition{})
			return err
		})
	}
	return group.Wait()
}

// unlistOpen takes a closed run from the list of the open ones. Should that fail, or the process die before, then
// whoever lists them next does it.
func (s *Store) unlistOpen(ctx context.Context, h runlog.Header) {
	_ = s.Objects.Delete(ctx, openPrefix+entryOf(h), objectstore.Condition{})
}

// ListRuns implements runlog.Store. The lists are read as a whole: a page of a thousand names costs one request, and
// only the headers of runs that are asked for are read.
func (s *Store) ListRuns(ctx context.Context, f runlog.Filter) ([]runlog.Header, error) {
	out, err := s.listRuns(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("listing runs: %w", err)
	}
	return out, nil
}

func (s *Store) listRuns(ctx context.Context, f runlog.Filter) ([]runlog.Header, error) {
	prefix := listPrefix
	if f.Open {
		prefix = openPrefix
	}
	infos, err := s.Objects.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var entries []listed
	for _, info := range infos {
		l, err := readEntry(prefix, info.Key)
		if err != nil {
			return nil, err
		}
		if l.matches(f) {
			entries = append(entries, l)
		}
	}
	var out []runlog.Header
	for len(entries) > 0 && (f.Limit <= 0 || len(out) < f.Limit) {
		n := len(entries)
		if f.Limit > 0 {
			n = min(n, f.Limit-len(out))
		}
		found, err := s.headers(ctx, entries[:n], f)
		if err != nil {
			return nil, err
		}
		out, entries = append(out, found...), entries[n:]
	}
	// Two entries may have come in the same moment, and a creation that was refused may have left one of its own.
	slices.SortStableFunc(out, func(a, b runlog.Header) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(b.RunID, a.RunID))
	})
	return slices.CompactFunc(out, func(a, b runlog.Header) bool { return a.RunID == b.RunID }), nil
}

// headers reads the headers of runs and leaves out those that are not there or not asked for.
func (s *Store) headers(ctx context.Context, entries []listed, f runlog.Filter) ([]runlog.Header, error) {
	found := make([]runlog.Header, len(entries))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, l := range entries {
		group.Go(func() error {
			doc, _, err := s.read(ctx, l.runID)
			switch {
			case errors.Is(err, runlog.ErrNotFound):
				return nil
			case err != nil:
				return fmt.Errorf("reading run %s: %w", l.runID, err)
			case f.Open && doc.Header.Status == runlog.StatusClosed:
				// Whoever has closed it has not come to this.
				return s.Objects.Delete(ctx, l.key, objectstore.Condition{})
			}
			found[i] = doc.Header
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(h runlog.Header) bool { return h.RunID == "" }), nil
}
