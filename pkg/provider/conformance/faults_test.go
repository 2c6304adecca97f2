//go:build emulators

package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/slipway-cdk/slipway/pkg/emulators"
	"github.com/slipway-cdk/slipway/pkg/emulators/faultproxy"
)

// TestFaults puts one resource of every type through each fault, on the emulator that is better at the type.
func TestFaults(t *testing.T) {
	cases, err := Cases()
	if err != nil {
		t.Fatal(err)
	}
	emulator := os.Getenv("SLIPWAY_TEST_EMULATOR")
	for _, c := range faultCases(cases) {
		t.Run(c.Name, func(t *testing.T) {
			known, err := readFaults("faults", c.Name)
			if err != nil {
				t.Fatal(err)
			}
			measured, err := readResults("results", c.Name)
			if err != nil {
				t.Fatal(err)
			}
			on := known.Emulator
			if on == "" || c.faultsDiffer(on) != "" {
				on = c.better(measured)
			}
			if on != emulator {
				t.Logf("%s runs on %s", c.Type, on)
				return
			}
			r := faultRun(t, c, emulator)
			switch {
			case *update:
				if err := r.write("faults", c.Name); err != nil {
					t.Fatal(err)
				}
			case known.Type == "":
				t.Errorf("nothing is on record: run with SLIPWAY_TEST_UPDATE=1")
			case !r.agrees(known):
				t.Errorf("measured %+v, on record is %+v: run with SLIPWAY_TEST_UPDATE=1", r, known)
			}
		})
	}
}

// faultRun makes all columns of a case.
func faultRun(t *testing.T, c Case, emulator string) faultResults {
	r := faultResults{Type: c.Type, Emulator: emulator, Cells: map[string]faultCell{}}
	for _, d := range c.Differs {
		if d.Emulator == emulator {
			r.Without = append(r.Without, d.Properties...)
		}
	}
	slices.Sort(r.Without)
	r.Without = slices.Compact(r.Without)
	// What a create can't do without stays: the case says what may be removed or changed.
	r.Without = slices.DeleteFunc(r.Without, func(name string) bool {
		_, given := c.Properties[name]
		return given && !c.has(name)
	})
	count, ok := census()[c.Type]
	if !ok {
		t.Fatalf("nothing counts the resources of type %s: add it to census", c.Type)
	}
	r.Listed = count.by
	for _, f := range faultColumns {
		column := func(spared string) (faultCell, error) {
			l, proxy, cfg := faultLab(t, c.less(r.Without))
			cell, err := l.everyCall(t, proxy, f, spared, func() (map[string]bool, error) { return count.list(t.Context(), cfg, l) })
			if err == nil {
				err = l.clear()
			} else {
				l.leave()
			}
			return cell, cmp.Or(err, proxy.Err())
		}
		cell, err := column("")
		if spared, because := c.spared(emulator, f.name); spared != "" {
			if err == nil {
				t.Errorf("%s, %s: it passes with %s too, of which the case says: %s", c.Type, f.name, spared, because)
			}
			cell, err = column(spared)
		}
		if err != nil {
			t.Errorf("%s, %s: %v", c.Type, f.name, err)
			cell.Result = "fails"
		}
		r.Cells[f.name] = cell
		t.Logf("%-10s %-28s %-12s %d+%d+%d calls hit: %s", emulator, c.Type, f.name, cell.Create, cell.Update, cell.Delete, cell.Result)
	}
	return r
}

// faultLab is a lab whose calls go through a proxy.
func faultLab(t *testing.T, c Case) (*life, *faultproxy.Proxy, aws.Config) {
	t.Helper()
	proxy, err := faultproxy.Start(*emulators.Config(t).BaseEndpoint)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	cfg := proxyConfig(t, proxy)
	l := &life{lab: labAt(t, cfg), c: c}
	if err := l.prepare(); err != nil {
		t.Fatal(err)
	}
	return l, proxy, cfg
}

// proxyConfig is the configuration of clients that call through the proxy and tell it what they call.
func proxyConfig(t *testing.T, proxy *faultproxy.Proxy) aws.Config {
	t.Helper()
	cfg := emulators.Config(t)
	client := cfg.HTTPClient.(*http.Client)
	cfg.BaseEndpoint = aws.String(proxy.URL())
	cfg.HTTPClient = &http.Client{Transport: proxy.Transport(client.Transport)}
	cfg.Credentials = inAccount()
	cfg.APIOptions = append(cfg.APIOptions, func(s *middleware.Stack) error {
		return s.Finalize.Add(middleware.FinalizeMiddlewareFunc("TellTheProxy", func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
			if r, ok := in.Request.(*smithyhttp.Request); ok {
				r.Header.Set(faultproxy.OperationHeader, awsmiddleware.GetOperationName(ctx))
			}
			return next.HandleFinalize(ctx, in)
		}), middleware.After)
	})
	return cfg
}

// everyCall hits the nth call of each step, for every n, unless it is the one that is spared.
func (l *life) everyCall(t *testing.T, proxy *faultproxy.Proxy, f faultColumn, spared string, list func() (map[string]bool, error)) (cell faultCell, err error) {
	t.Helper()
	cell.Result = pass
	before, err := list()
	if err != nil {
		return cell, fmt.Errorf("counting before: %w", err)
	}
	for n := 1; n <= 40; n++ {
		reached := false
		// during makes one step while its nth call is hit, and waits for what is under way.
		during := func(count *int, do func() error) error {
			proxy.Use(func(c faultproxy.Call) faultproxy.Fault {
				switch {
				case f.fault == faultproxy.Twice && c.Operation == l.c.Creates && c.Operation != "":
				case spared != "" && c.Operation == spared:
				case c.N == n:
					return f.fault
				case c.N == n+1:
					return f.again
				}
				return faultproxy.None
			})
			err := do()
			calls := proxy.Calls()
			proxy.Use(nil)
			reached = reached || len(calls) >= n
			if len(calls) >= n && calls[n-1].Fault != faultproxy.None {
				*count++
			}
			if err != nil {
				return fmt.Errorf("%w (the calls: %s)", err, calledText(calls))
			}
			return nil
		}
		r, err := l.faultLife(during, &cell, before, list)
		if err != nil {
			return cell, fmt.Errorf("call %d: %w", n, err)
		}
		if l.gone(r) != nil {
			return cell, fmt.Errorf("call %d: it can still be read", n)
		}
		if !reached {
			return cell, nil
		}
	}
	return cell, errors.New("a step makes more than 40 calls")
}

// faultLife creates, changes and deletes a resource and has it counted.
func (l *life) faultLife(during func(*int, func() error) error, cell *faultCell, before map[string]bool, list func() (map[string]bool, error)) (made, error) {
	req := l.request(l.c.Type, "Resource", l.c.Properties)
	r := made{properties: l.c.Properties}
	err := during(&cell.Create, func() error {
		p, err := l.drive(creating, req)
		r.id, r.attributes = p.PhysicalID, p.Attributes
		return err
	})
	if err != nil {
		return r, fmt.Errorf("creating: %w", err)
	}
	if err := l.counted(1, before, list); err != nil {
		return r, fmt.Errorf("after the creation: %w", err)
	}
	if err := l.expect(r.id, l.c.Properties); err != nil {
		return r, fmt.Errorf("after the creation: %w", err)
	}
	if to := l.other(); to != nil {
		change := l.change(r, to)
		err := during(&cell.Update, func() error {
			p, err := l.drive(updating, change)
			if err == nil && p.PhysicalID != r.id {
				err = fmt.Errorf("it made %s out of %s", p.PhysicalID, r.id)
			}
			return err
		})
		if err != nil {
			return r, fmt.Errorf("updating: %w", err)
		}
		if err := l.counted(1, before, list); err != nil {
			return r, fmt.Errorf("after the update: %w", err)
		}
		if err := l.expect(r.id, to); err != nil {
			return r, fmt.Errorf("after the update: %w", err)
		}
		r.properties = to
	}
	err = during(&cell.Delete, func() error {
		_, err := l.drive(deleting, l.removal(l.c.Type, r))
		return err
	})
	if err != nil {
		return r, fmt.Errorf("deleting: %w", err)
	}
	if err := l.counted(0, before, list); err != nil {
		return r, fmt.Errorf("after the deletion: %w", err)
	}
	return r, nil
}

// other is the case's properties with one changed, nil when nothing can be.
func (l *life) other() map[string]any {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(l.c.Change)), func(n string) bool { return slices.Contains(l.c.Together, n) })
	if l.c.Faults != "" && l.c.Change[l.c.Faults] != nil {
		names = []string{l.c.Faults}
	}
	if len(names) == 0 {
		return nil
	}
	return with(l.c.Properties, names[0], l.c.Change[names[0]])
}

// gone is nil when a deleted resource can't be read.
func (l *life) gone(r made) error {
	if err := l.expectGone(r); err != nil {
		return err
	}
	return nil
}

// counted checks how many resources there are that were not there before.
func (l *life) counted(want int, before map[string]bool, list func() (map[string]bool, error)) error {
	now, err := list()
	if err != nil {
		return fmt.Errorf("counting: %w", err)
	}
	var more []string
	for id := range now {
		if !before[id] {
			more = append(more, id)
		}
	}
	if slices.Sort(more); len(more) != want {
		return fmt.Errorf("there are %d where there should be %d: %s", len(more), want, strings.Join(more, ", "))
	}
	return nil
}

func calledText(calls []faultproxy.Call) string {
	var out []string
	for _, c := range calls {
		name := c.Operation
		if c.Fault != faultproxy.None {
			name += " (" + string(c.Fault) + ")"
		}
		out = append(out, name)
	}
	return strings.Join(out, ", ")
}
