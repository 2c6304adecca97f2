//go:build unix

package synth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/lookup"
)

// assemblyScript is the shell of an app that writes an assembly of one stack.
const assemblyScript = `
mkdir -p "$CDK_OUTDIR"
echo '{"Resources": {}}' > "$CDK_OUTDIR/A.template.json"
echo '{"version": "55.0.0", "missing": '"${MISSING:-[]}"', "artifacts": {"A": {"type": "aws:cloudformation:stack", "properties": {"templateFile": "A.template.json"}}}}' > "$CDK_OUTDIR/manifest.json"
`

// project is a directory with an app in it; the app is a shell script.
func project(t *testing.T, script string, files map[string]string) (dir string, opts Options) {
	t.Helper()
	dir = t.TempDir()
	put(t, dir, "app.sh", script)
	for name, content := range files {
		put(t, dir, name, content)
	}
	return dir, Options{App: "sh app.sh", WorkDir: dir, Env: []string{"PATH=" + os.Getenv("PATH")}}
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, elem ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("was accepted")
	}
	text := err.Error()
	for _, d := range diag.From(err) {
		text += "\n" + d.Next
	}
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("error %q does not say %q", text, p)
		}
	}
}

func TestAppComesFromTheFirstPlaceThatNamesOne(t *testing.T) {
	app := func(name string) string { return `echo ` + name + ` > ran; ` + strings.TrimSpace(assemblyScript) }
	tests := []struct {
		name, flag, slipway, cdkd, file, want string
	}{
		{"the flag", app("flag"), app("slipway"), app("cdkd"), app("file"), "flag"},
		{"SLIPWAY_APP", "", app("slipway"), app("cdkd"), app("file"), "slipway"},
		{"CDKD_APP", "", "", app("cdkd"), app("file"), "cdkd"},
		{"cdk.json", "", "", "", app("file"), "file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := json.Marshal(map[string]string{"app": tt.file})
			if err != nil {
				t.Fatal(err)
			}
			dir, opts := project(t, "", map[string]string{"cdk.json": string(b)})
			opts.App = tt.flag
			opts.Env = append(opts.Env, "SLIPWAY_APP="+tt.slipway, "CDKD_APP="+tt.cdkd)
			if _, err := Run(context.Background(), opts); err != nil {
				t.Fatal(err)
			}
			if got := read(t, dir, "ran"); got != tt.want {
				t.Errorf("the app of %s ran, want that of %s", got, tt.want)
			}
		})
	}
}

func TestNoAppNamesTheThreeWaysToGiveOne(t *testing.T) {
	_, opts := project(t, "", nil)
	opts.App = ""
	_, err := Run(context.Background(), opts)
	wantError(t, err, "no app", "--app", "SLIPWAY_APP", "cdk.json")
}

func TestADirectoryIsAReadyAssembly(t *testing.T) {
	_, opts := project(t, "exit 1", map[string]string{
		"out/manifest.json":   `{"version": "55.0.0", "artifacts": {"A": {"type": "aws:cloudformation:stack", "properties": {"templateFile": "A.template.json"}}}}`,
		"out/A.template.json": "{}",
		"bad/manifest.json":   `{"version": "55.0.0", "missing": [{"key": "vpc:1", "provider": "vpc-provider"}]}`,
	})
	opts.App = "out"
	asm, err := Run(context.Background(), opts)
	if err != nil || len(asm.Stacks) != 1 {
		t.Fatalf("assembly %v, error %v", asm, err)
	}
	opts.App = "bad"
	_, err = Run(context.Background(), opts)
	wantError(t, err, "not complete", "vpc:1")
}

func TestAppEnvironment(t *testing.T) {
	dir, opts := project(t, `env > env; cat > stdin`+assemblyScript, map[string]string{
		"cdk.json":         `{"context": {"a": "project", "b": "project", "c": "project", "n": 12345678901234567890}}`,
		"cdk.context.json": `{"b": "saved", "c": "saved"}`,
		"home/.cdk.json":   `{"context": {"a": "home", "h": "home", "aws:cdk:version-reporting": false}}`,
	})
	opts.HomeDir = filepath.Join(dir, "home")
	opts.Account = "111122223333"
	opts.Context = map[string]any{"c": "<line>"}
	opts.Env = append(opts.Env, "AWS_DEFAULT_REGION=eu-west-3", "CDK_OUTDIR=stale", "OWN=1")
	if _, err := Run(context.Background(), opts); err != nil {
		t.Fatal(err)
	}
	env := environ(strings.Split(read(t, dir, "env"), "\n"))
	for name, want := range map[string]string{
		"CDK_OUTDIR": filepath.Join(dir, "cdk.out"), "CDK_DEFAULT_REGION": "eu-west-3", "CDK_DEFAULT_ACCOUNT": "111122223333",
		"CDK_CLI_ASM_VERSION": "55.0.0", "CDK_CLI_VERSION": cliVersion, "OWN": "1", "CONTEXT_OVERFLOW_LOCATION_ENV": "",
	} {
		if got := env.get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	want := `{"a":"project","aws:cdk:bundling-stacks":["**"],"aws:cdk:enable-asset-metadata":true,"aws:cdk:enable-path-metadata":true,` +
		`"aws:cdk:version-reporting":false,"b":"saved","c":"<line>","h":"home","n":12345678901234567890}`
	if d := cmp.Diff(want, env.get("CDK_CONTEXT_JSON")); d != "" {
		t.Error(d)
	}
	if got := read(t, dir, "stdin"); got != "" {
		t.Errorf("the app could read %q from its input", got)
	}
}

func TestLargeContextGoesThroughAFile(t *testing.T) {
	dir, opts := project(t, `cp "$CONTEXT_OVERFLOW_LOCATION_ENV" overflow; echo "$CONTEXT_OVERFLOW_LOCATION_ENV" > where; echo "$CDK_CONTEXT_JSON" > context`+assemblyScript, nil)
	big := strings.Repeat("x", maxContextEnv)
	opts.Context = map[string]any{"big": big}
	if _, err := Run(context.Background(), opts); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(read(t, dir, "overflow")), &got); err != nil || got["big"] != big {
		t.Errorf("the file does not hold the context: %v", err)
	}
	if v := read(t, dir, "context"); v != "" {
		t.Errorf("CDK_CONTEXT_JSON is set too: %d bytes", len(v))
	}
	if _, err := os.Stat(read(t, dir, "where")); !isMissing(err) {
		t.Errorf("the file is left behind: %v", err)
	}
}

func TestAFailedAppIsQuoted(t *testing.T) {
	_, opts := project(t, `echo to stdout; printf 'Error: \033[31mno such table\033[0m\n' >&2; exit 3`, nil)
	var stderr bytes.Buffer
	opts.Stderr = &stderr
	_, err := Run(context.Background(), opts)
	wantError(t, err, "exit status 3", "to stdout", "no such table", "sh app.sh")
	if strings.ContainsRune(err.Error(), 0x1b) {
		t.Errorf("the error holds an escape: %q", err)
	}
	if !strings.Contains(stderr.String(), "\x1b[31mno such table") {
		t.Errorf("the output was not passed on: %q", stderr.String())
	}
}

func TestOnlyTheEndOfLongOutputIsQuoted(t *testing.T) {
	_, opts := project(t, `i=0; while [ $i -lt 2000 ]; do echo "line $i of the output"; i=$((i+1)); done; exit 1`, nil)
	_, err := Run(context.Background(), opts)
	wantError(t, err, "line 1999 of the output", "…")
	if strings.Contains(err.Error(), "line 3 of") || len(err.Error()) > tailBytes+200 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

func TestAnAppThatWritesNothingIsRefusedEvenBesideAnOldAssembly(t *testing.T) {
	dir, opts := project(t, `exit 0`, nil)
	_, err := Run(context.Background(), opts)
	wantError(t, err, "wrote no cloud assembly", "synth()")

	put(t, dir, "cdk.out/manifest.json", `{"version": "55.0.0"}`)
	_, err = Run(context.Background(), opts)
	wantError(t, err, "wrote no cloud assembly")
}

func TestACommandThatDoesNotExist(t *testing.T) {
	_, opts := project(t, "", nil)
	opts.App = "no-such-command-here"
	_, err := Run(context.Background(), opts)
	wantError(t, err, "exit status 127", "no-such-command-here")
}

func TestMissingContextIsLookedUpSavedAndGiven(t *testing.T) {
	// The app asks for zones until the context has them.
	dir, opts := project(t, `
echo run >> runs
case "$CDK_CONTEXT_JSON" in *ap-south-1c*) ;; *) MISSING='[{"key": "zones:1", "provider": "availability-zones", "props": {"account": "1", "region": "ap-south-1"}}]' ;; esac
`+assemblyScript, map[string]string{"cdk.context.json": `{"kept": 1.50}`})
	opts.Region = "eu-west-1"
	opts.Lookup = lookup.Local()
	for range 2 {
		if _, err := Run(context.Background(), opts); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := read(t, dir, "runs"), "run\nrun\nrun"; got != want {
		t.Errorf("the app ran %d times, want two and then, with the saved answer, one", strings.Count(got, "run"))
	}
	want := "{\n  \"kept\": 1.50,\n  \"zones:1\": [\n    \"ap-south-1a\",\n    \"ap-south-1b\",\n    \"ap-south-1c\"\n  ]\n}"
	if d := cmp.Diff(want, read(t, dir, "cdk.context.json")); d != "" {
		t.Error(d)
	}
}

func TestAFailedLookupReachesTheAppAndIsNotSaved(t *testing.T) {
	// The app gets by without the value once it knows that the lookup failed.
	dir, opts := project(t, `
case "$CDK_CONTEXT_JSON" in *providerError*) ;; *) MISSING='[{"key": "vpc:1", "provider": "vpc-provider", "props": {}}]' ;; esac
`+assemblyScript, nil)
	opts.Lookup = lookup.Local()
	if _, err := Run(context.Background(), opts); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "cdk.context.json")); !isMissing(err) {
		t.Errorf("the failure was saved: %v", err)
	}
}

func TestTheLoopEndsWhenTheAppAsksForTheSameAgain(t *testing.T) {
	ask := `echo run >> runs
MISSING='[{"key": "vpc:1", "provider": "vpc-provider", "props": {}}, {"key": "zones:1", "provider": "availability-zones", "props": {"region": "r"}}]'
` + assemblyScript
	t.Run("after a failed lookup, with the reason", func(t *testing.T) {
		dir, opts := project(t, ask, nil)
		opts.Lookup = lookup.Local()
		_, err := Run(context.Background(), opts)
		wantError(t, err, "context that could not be found", "vpc:1: lookups of kind vpc-provider need an AWS account; not available with --local")
		if got := read(t, dir, "runs"); got != "run\nrun" {
			t.Errorf("runs: %q", got)
		}
	})
	t.Run("without any lookup", func(t *testing.T) {
		_, opts := project(t, ask, nil)
		_, err := Run(context.Background(), opts)
		wantError(t, err, "zones:1: lookups of kind availability-zones are not supported")
	})
	t.Run("although everything was answered", func(t *testing.T) {
		_, opts := project(t, ask, nil)
		var r lookup.Registry
		answer := lookup.Func(func(context.Context, lookup.Query) (any, error) { return "x", nil })
		r.Register("vpc-provider", answer)
		r.Register("availability-zones", answer)
		opts.Lookup = &r
		_, err := Run(context.Background(), opts)
		wantError(t, err, "still asks for vpc:1, zones:1")
	})
}

func TestAFailedLookupSaysItselfWhatToDo(t *testing.T) {
	_, opts := project(t, `MISSING='[{"key": "b", "provider": "ssm"}, {"key": "a", "provider": "ami"}, {"key": "b", "provider": "ssm"}, {"key": "c", "provider": "vpc-provider"}, {"key": "d", "provider": "key-provider"}]'
`+assemblyScript, nil)
	var r lookup.Registry
	asked := make(chan string, 8)
	r.Register("ssm", lookup.Func(func(context.Context, lookup.Query) (any, error) {
		asked <- "ssm"
		return nil, fmt.Errorf("in account 1: %w", advised{})
	}))
	r.Register("ami", lookup.Func(func(context.Context, lookup.Query) (any, error) { return nil, errors.New("no image") }))
	expired := errors.New("the credentials have expired")
	for _, kind := range []string{"vpc-provider", "key-provider"} {
		r.Register(kind, lookup.Func(func(context.Context, lookup.Query) (any, error) { return nil, expired }))
	}
	opts.Lookup = &r
	_, err := Run(context.Background(), opts)
	list := diag.From(err)
	if len(list) != 3 {
		t.Fatalf("the problems are %v", list)
	}
	if list[0].Detail != "b: ssm lookup: in account 1: denied" || list[0].Next != "Ask Ann." {
		t.Errorf("%+v", list[0])
	}
	if list[1].Detail != "a: ami lookup: no image" || !strings.Contains(list[1].Next, "cdk.context.json") {
		t.Errorf("%+v", list[1])
	}
	if list[2].Detail != "c, d: the credentials have expired" {
		t.Errorf("%+v", list[2])
	}
	if len(asked) != 1 {
		t.Errorf("the same was asked %d times", len(asked))
	}
}

type advised struct{}

func (advised) Error() string { return "denied" }
func (advised) Next() string  { return "Ask Ann." }

func TestQuestionsAreAskedTogetherButNotAllAtOnce(t *testing.T) {
	var missing []string
	for i := range 3 * concurrentLookups {
		missing = append(missing, fmt.Sprintf(`{"key": "k%d", "provider": "ssm"}`, i))
	}
	dir, opts := project(t, `
case "$CDK_CONTEXT_JSON" in *k0*) ;; *) MISSING='[`+strings.Join(missing, ", ")+`]' ;; esac
`+assemblyScript, nil)
	// The first of them wait for one another: together they must be as many as may be, and never more.
	var now, most atomic.Int32
	full := make(chan struct{})
	var r lookup.Registry
	r.Register("ssm", lookup.Func(func(ctx context.Context, _ lookup.Query) (any, error) {
		defer now.Add(-1)
		switch n := now.Add(1); {
		case n > concurrentLookups:
			most.Store(n)
		case n == concurrentLookups:
			select {
			case <-full:
			default:
				close(full)
			}
		}
		select {
		case <-full:
		case <-ctx.Done():
		}
		return "x", nil
	}))
	opts.Lookup = &r
	if _, err := Run(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	if most.Load() != 0 {
		t.Errorf("%d were asked at once", most.Load())
	}
	if n := strings.Count(read(t, dir, "cdk.context.json"), `"x"`); n != 3*concurrentLookups {
		t.Errorf("%d answers are saved", n)
	}
}

func TestTheIdentityIsAskedForOnlyWhereItIsNotKnownAndAnAppIsRun(t *testing.T) {
	script := `echo "$CDK_DEFAULT_ACCOUNT $CDK_DEFAULT_REGION" > identity
` + assemblyScript
	for name, c := range map[string]struct {
		account, region, want string
		calls                 int
	}{
		"neither is known": {"", "", "1 r", 1},
		"a region is":      {"", "mine", "1 mine", 1},
		"the account is":   {"2", "mine", "2 mine", 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir, opts := project(t, script, nil)
			opts.Account, opts.Region = c.account, c.region
			calls := 0
			opts.Identify = func(context.Context) (string, string) {
				calls++
				return "1", "r"
			}
			if _, err := Run(context.Background(), opts); err != nil {
				t.Fatal(err)
			}
			if got := read(t, dir, "identity"); got != c.want || calls != c.calls {
				t.Errorf("the app saw %q after %d calls", got, calls)
			}
			opts.Account, opts.App = "", filepath.Join(dir, "cdk.out")
			if _, err := Run(context.Background(), opts); err != nil || calls != c.calls {
				t.Errorf("a ready assembly: %d calls, %v", calls, err)
			}
		})
	}
}

func TestTheEndOfTheContextKillsTheAppAndItsChildren(t *testing.T) {
	// The app starts a child, tells its id, and waits for it; both ignore the polite signal.
	dir, opts := project(t, `trap '' TERM; (trap '' TERM; while :; do sleep 60; done) & echo $! > child.tmp; mv child.tmp child; echo started; wait`, nil)
	ctx, cancel := context.WithCancel(context.Background())
	opts.Grace = time.Millisecond
	opts.Stderr = writerFunc(func(p []byte) (int, error) {
		cancel()
		return len(p), nil
	})
	_, err := Run(ctx, opts)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	pid, err := strconv.Atoi(read(t, dir, "child"))
	if err != nil {
		t.Fatal(err)
	}
	// The kernel ends a process some time after it was told to.
	for deadline := time.Now().Add(10 * time.Second); alive(pid); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("the child %d lives on", pid)
		}
	}
}

// alive reports whether a process runs; one that has ended and waits to be collected does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return !isMissing(err)
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestAnAppThatLeavesAChildBehindHasStillEnded(t *testing.T) {
	dir, opts := project(t, `sleep 600 & echo $! > child`+assemblyScript, nil)
	opts.Grace = time.Millisecond
	asm, err := Run(context.Background(), opts)
	if err != nil || len(asm.Stacks) != 1 {
		t.Fatalf("assembly %v, error %v", asm, err)
	}
	pid, err := strconv.Atoi(read(t, dir, "child"))
	if err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

func TestBadProjectFilesAreNamed(t *testing.T) {
	for name, content := range map[string]string{"cdk.json": "{", "cdk.context.json": "[]"} {
		_, opts := project(t, assemblyScript, map[string]string{name: content})
		_, err := Run(context.Background(), opts)
		wantError(t, err, "cannot read", name)
	}
	_, opts := project(t, assemblyScript, map[string]string{"cdk.json": `{"app": ["node", "app"]}`})
	_, err := Run(context.Background(), opts)
	wantError(t, err, `"app" is not a string`)
}

func TestParseContext(t *testing.T) {
	got, err := ParseContext([]string{"a=1", "b=x=y", "c=", "a=2"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]any{"a": "2", "b": "x=y", "c": ""}, got); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{"a", "=v", "aws:cdk:x=1"} {
		if _, err := ParseContext([]string{bad}); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestFirstToken(t *testing.T) {
	for in, want := range map[string]string{
		"app.js": "app.js", "  app.js --x": "app.js", `"my app.js" -x`: `"my app.js"`, `'a b.js'`: `'a b.js'`, "go run .": "go", "": "", `"open`: `"open`,
	} {
		if got := firstToken(in); got != want {
			t.Errorf("firstToken(%q) = %q, want %q", in, got, want)
		}
	}
}
