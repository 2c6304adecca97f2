// Package synth makes a cloud assembly out of a CDK app: it runs the app's command, answers the questions
// the app asks about the account through a lookup, and runs it again until nothing is missing. A directory
// in place of a command is an assembly that is ready.
package synth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/lookup"
)

// DefaultOutput is where the app writes its assembly unless told otherwise.
const DefaultOutput = "cdk.out"

// Options say which app to synthesize and how.
type Options struct {
	// App is the command that runs the app, or the directory of a ready assembly. When it is empty, the
	// environment variables SLIPWAY_APP and CDKD_APP and then "app" of cdk.json decide.
	App string
	// WorkDir is where cdk.json and cdk.context.json are and where the app runs; "" is the current directory.
	WorkDir string
	// Output is the directory the app writes to, relative to WorkDir; "" is DefaultOutput.
	Output string
	// Account and Region become CDK_DEFAULT_ACCOUNT and CDK_DEFAULT_REGION. Where Region is empty, AWS_REGION
	// and AWS_DEFAULT_REGION are read.
	Account string
	Region  string
	// Identify tells an account and a region where Account is empty; a Region that is known counts. It is called once,
	// and not for a ready assembly. "" is unknown: the app then runs without. Nil tells nothing.
	Identify func(context.Context) (account, region string)
	// Context is what the user gave with -c; ParseContext makes it from k=v.
	Context map[string]any
	// Env is the environment to read and to hand on ("K=v"); nil is that of this process.
	Env []string
	// HomeDir holds the user's .cdk.json; "" reads none.
	HomeDir string
	// Stderr receives what the app prints, both streams, while it runs. Nil discards it; an app that fails is
	// quoted in the error in any case.
	Stderr io.Writer
	// Grace is how long an app that was asked to end, or a child that it left behind, may take before it is
	// no longer waited for; 0 is three seconds.
	Grace time.Duration
	// Lookup answers the app's context queries, several at a time. Nil answers none.
	Lookup Lookup
}

// Lookup answers context queries; *lookup.Registry is one.
type Lookup interface {
	Lookup(ctx context.Context, q lookup.Query) (any, error)
}

var _ Lookup = (*lookup.Registry)(nil)

// Run synthesizes the app and reads the assembly.
//
// Errors are diag.Diagnostics, except that a ctx that ends kills the app with all of its children and gives
// an error that wraps the context's: no app given, an app that fails (with the end of what it printed), an app
// that writes no assembly, context that can't be found, and what assembly.Read refuses.
func Run(ctx context.Context, opts Options) (*assembly.Assembly, error) {
	s, err := newSession(opts)
	if err != nil {
		return nil, err
	}
	if dir, ok := s.readyAssembly(); ok {
		return readReady(dir)
	}
	if opts.Identify != nil && opts.Account == "" {
		account, region := opts.Identify(ctx)
		s.opts.Account, s.region = account, cmp.Or(s.region, region)
	}
	var before map[string]bool
	var failures []failure
	for {
		asm, err := s.runOnce(ctx)
		if err != nil {
			return nil, err
		}
		if len(asm.Missing) == 0 {
			return asm, nil
		}
		missing := keys(asm.Missing)
		// The app asks for just what it was answered last time: another run would not help (reference § 4).
		if before != nil && sameKeys(before, missing) {
			return nil, noProgress(missing, failures)
		}
		before = missing
		if failures, err = s.answer(ctx, asm.Missing); err != nil {
			return nil, err
		}
	}
}

// session is one Run: the options with their defaults filled in, and the context as it grows.
type session struct {
	opts    Options
	app     string
	workDir string
	outDir  string
	env     environ
	region  string
	context *contextFiles
}

func newSession(opts Options) (*session, error) {
	s := &session{opts: opts}
	var err error
	if s.workDir, err = filepath.Abs(opts.WorkDir); err != nil {
		return nil, fmt.Errorf("finding the directory of the app: %w", err)
	}
	if opts.Env == nil {
		opts.Env = os.Environ()
	}
	s.env = environ(opts.Env)
	s.region = cmp.Or(opts.Region, s.env.get("AWS_REGION"), s.env.get("AWS_DEFAULT_REGION"))
	if s.context, err = readContext(s.workDir, opts.HomeDir, opts.Context); err != nil {
		return nil, err
	}
	s.app = cmp.Or(opts.App, s.env.get("SLIPWAY_APP"), s.env.get("CDKD_APP"), s.context.app)
	if strings.TrimSpace(s.app) == "" {
		return nil, diag.Diagnostics{{
			Severity: diag.Error,
			Summary:  "no app to synthesize",
			Detail:   "--app is not given, SLIPWAY_APP is not set, and " + filepath.Join(s.workDir, "cdk.json") + " names no \"app\"",
			Next:     `Give one of the three: --app "node app.js", SLIPWAY_APP, or {"app": "…"} in cdk.json. A directory such as cdk.out is taken as a ready assembly.`,
		}}
	}
	s.outDir = s.path(cmp.Or(opts.Output, DefaultOutput))
	return s, nil
}

func (s *session) path(p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(s.workDir, p)
}

func (s *session) readyAssembly() (string, bool) {
	dir := s.path(s.app)
	info, err := os.Stat(dir)
	return dir, err == nil && info.IsDir()
}

// readReady reads an assembly that someone else synthesized. The app is not there to be run again, so what it
// is missing stays missing, and templates made of placeholder values are not for deploying.
func readReady(dir string) (*assembly.Assembly, error) {
	asm, err := assembly.Read(dir)
	if err != nil {
		return nil, err
	}
	if len(asm.Missing) > 0 {
		return nil, diag.Diagnostics{{
			Severity: diag.Error,
			Summary:  "the cloud assembly is not complete: " + dir,
			Detail:   "the app was still missing context when it was synthesized: " + strings.Join(sorted(keys(asm.Missing)), ", "),
			Next:     "Synthesize it from the app (--app with a command), so that the context can be looked up.",
		}}
	}
	return asm, nil
}

// runOnce runs the app with the context known so far and reads what it wrote.
func (s *session) runOnce(ctx context.Context) (*assembly.Assembly, error) {
	before := fingerprint(s.outDir)
	if err := s.exec(ctx); err != nil {
		return nil, err
	}
	// A manifest of an earlier run must not pass for this one's.
	if after := fingerprint(s.outDir); after == nil || before != nil && os.SameFile(before, after) && before.ModTime().Equal(after.ModTime()) {
		return nil, diag.Diagnostics{{
			Severity: diag.Error,
			Summary:  "the app wrote no cloud assembly",
			Detail:   "it ended well, but there is no new " + assembly.ManifestFile + " in " + s.outDir,
			Next:     "Check that the app calls synth() at its end and that it does not set its own outdir.",
		}}
	}
	return assembly.Read(s.outDir)
}

// fingerprint is the state of the manifest before the app runs, nil when there is none.
func fingerprint(dir string) fs.FileInfo {
	info, err := os.Stat(filepath.Join(dir, assembly.ManifestFile))
	if err != nil {
		return nil
	}
	return info
}

// concurrentLookups is how many questions are asked at a time. The services that answer them throttle accounts that
// ask much faster.
const concurrentLookups = 8

// failure is a question without an answer.
type failure struct {
	key string
	err error
}

// reason is the error without the kind of question that a registry puts before it.
func (f failure) reason() string {
	if inner := errors.Unwrap(f.err); inner != nil {
		return inner.Error()
	}
	return f.err.Error()
}

// answer looks up what is missing and adds it to the context. A lookup that fails becomes a context value
// that CDK understands as a failure; it is not saved. The failures are returned, in the order of the questions, to be
// reported should the app not get by without.
func (s *session) answer(ctx context.Context, missing []assembly.MissingContext) ([]failure, error) {
	missing = distinct(missing)
	values, errs := make([]any, len(missing)), make([]error, len(missing))
	var asking errgroup.Group
	asking.SetLimit(concurrentLookups)
	for i, m := range missing {
		asking.Go(func() error {
			values[i], errs[i] = s.lookup(ctx, m)
			return nil
		})
	}
	_ = asking.Wait() // every question's error is in errs
	found := map[string]any{}
	var failures []failure
	for i, m := range missing {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("looking up %s: %w", m.Key, ctx.Err())
		}
		if err := errs[i]; err != nil {
			failures = append(failures, failure{m.Key, err})
			values[i] = map[string]any{"$providerError": err.Error(), dontSave: true}
		}
		found[m.Key] = values[i]
	}
	return failures, s.context.add(found)
}

// distinct leaves out questions that are asked again: each assembly of an app lists its own.
func distinct(missing []assembly.MissingContext) []assembly.MissingContext {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(missing), func(m assembly.MissingContext) bool {
		again := seen[m.Key]
		seen[m.Key] = true
		return again
	})
}

func (s *session) lookup(ctx context.Context, m assembly.MissingContext) (any, error) {
	if s.opts.Lookup == nil {
		return nil, &lookup.UnavailableError{Kind: m.Provider}
	}
	q := lookup.Query{Kind: m.Provider, Props: m.Props, Account: s.opts.Account, Region: s.region}
	if v, ok := m.Props["account"].(string); ok && v != "" {
		q.Account = v
	}
	if v, ok := m.Props["region"].(string); ok && v != "" {
		q.Region = v
	}
	return s.opts.Lookup.Lookup(ctx, q)
}

// noProgress is the end of an app that would ask the same again. Each reason of failed lookups is a problem of its own,
// with what the lookup itself says to do about it.
func noProgress(missing map[string]bool, failures []failure) error {
	const summary = "the app needs context that could not be found"
	if len(failures) == 0 {
		return diag.Diagnostics{{
			Severity: diag.Error,
			Summary:  summary,
			Detail:   "it still asks for " + strings.Join(sorted(missing), ", ") + ", which was answered already",
			Next:     "Check that the app does not override this context or ask for something new in each run.",
		}}
	}
	// What many questions have in common, such as credentials that have expired, is told once.
	var reasons []string
	alike := map[string][]failure{}
	for _, f := range failures {
		r := f.reason()
		if alike[r] == nil {
			reasons = append(reasons, r)
		}
		alike[r] = append(alike[r], f)
	}
	var out diag.Diagnostics
	for _, r := range reasons {
		same := alike[r]
		next := "Put the value into cdk.context.json, or make the lookup possible."
		var advice interface{ Next() string }
		if errors.As(same[0].err, &advice) {
			next = advice.Next()
		}
		var asked []string
		for _, f := range same {
			asked = append(asked, f.key)
		}
		detail := strings.Join(asked, ", ") + ": " + r
		if len(same) == 1 {
			detail = same[0].key + ": " + same[0].err.Error()
		}
		out = append(out, diag.Diagnostic{Severity: diag.Error, Summary: summary, Detail: detail, Next: next})
	}
	return out
}

func keys(missing []assembly.MissingContext) map[string]bool {
	out := map[string]bool{}
	for _, m := range missing {
		out[m.Key] = true
	}
	return out
}

func sameKeys(a, b map[string]bool) bool {
	if len(a) != len(b) {
		return false
	}
	for k := range a {
		if !b[k] {
			return false
		}
	}
	return true
}

func sorted(set map[string]bool) []string {
	out := make([]string, 0, len(set))
	for k := range set {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// environ is an environment as os.Environ returns it.
type environ []string

// get returns the value of the last entry for name, "" when there is none.
func (e environ) get(name string) string {
	for i := len(e) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(e[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// isMissing reports whether err is that of a file that does not exist.
func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
