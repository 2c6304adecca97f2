package synth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/diag"
)

const (
	// maxContextEnv is how large the context may be in an environment variable; a larger one goes through a
	// file. Linux allows 128 KiB for one, Windows 32 KiB for all of them.
	maxContextEnv = 32 * 1024
	// tailBytes is how much of the app's output an error quotes.
	tailBytes = 4 * 1024
	// defaultGrace is Options.Grace where it is not given.
	defaultGrace = 3 * time.Second
	// cliVersion is the version of the CDK CLI that the app believes to be run by. Apps use it to refuse an
	// old CLI.
	cliVersion = "2.1148.2"
)

// exec runs the app's command once, through the shell.
func (s *session) exec(ctx context.Context) error {
	env, cleanup, err := s.appEnv()
	if err != nil {
		return err
	}
	defer cleanup()
	command, err := withNode(s.app)
	if err != nil {
		return err
	}
	out := &output{to: s.opts.Stderr}
	cmd := shell(ctx, command)
	cmd.Dir = s.workDir
	cmd.Env = env
	cmd.Stdout = out
	cmd.Stderr = out
	cmd.WaitDelay = cmp.Or(s.opts.Grace, defaultGrace)
	prepareGroup(cmd)
	err = cmd.Run()
	if ctx.Err() != nil {
		killGroup(cmd)
		return fmt.Errorf("the app was stopped: %w", ctx.Err())
	}
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		// ErrWaitDelay: the app ended well and left a child behind that holds its output open.
		return nil
	default:
		return s.failed(err, out.tail())
	}
}

func (s *session) failed(err error, tail string) error {
	d := diag.Diagnostic{
		Severity: diag.Error,
		Summary:  "the app failed",
		Next:     "Run it on its own to see more: " + s.app,
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		d.Summary = "the app failed: " + exit.String()
	default:
		d.Summary = "the app could not be started"
		d.Detail = err.Error()
	}
	if tail != "" {
		d.Detail = tail
	} else if d.Detail == "" {
		d.Detail = "it printed nothing"
	}
	return diag.Diagnostics{d}
}

// appEnv is the environment of the app (reference § 4), and what to call once the app has ended.
func (s *session) appEnv() ([]string, func(), error) {
	nothing := func() {}
	context, err := encode(s.context.merged(), "")
	if err != nil {
		return nil, nothing, fmt.Errorf("encoding the context: %w", err)
	}
	set := map[string]string{
		"CDK_OUTDIR":                    s.outDir,
		"CDK_CLI_ASM_VERSION":           fmt.Sprintf("%d.0.0", assembly.SchemaVersion),
		"CDK_CLI_VERSION":               cliVersion,
		"CDK_CONTEXT_JSON":              strings.TrimSpace(string(context)),
		"CONTEXT_OVERFLOW_LOCATION_ENV": "",
	}
	if s.region != "" {
		set["CDK_DEFAULT_REGION"] = s.region
	}
	if s.opts.Account != "" {
		set["CDK_DEFAULT_ACCOUNT"] = s.opts.Account
	}
	cleanup := nothing
	if len(context) > maxContextEnv {
		dir, err := os.MkdirTemp("", "slipway-context-")
		if err != nil {
			return nil, nothing, fmt.Errorf("writing the context for the app: %w", err)
		}
		cleanup = func() { os.RemoveAll(dir) }
		file := filepath.Join(dir, "context-overflow.json")
		if err := os.WriteFile(file, context, 0o600); err != nil {
			cleanup()
			return nil, nothing, fmt.Errorf("writing the context for the app: %w", err)
		}
		set["CDK_CONTEXT_JSON"] = ""
		set["CONTEXT_OVERFLOW_LOCATION_ENV"] = file
	}
	env := make([]string, 0, len(s.env)+len(set))
	for _, e := range s.env {
		name, _, _ := strings.Cut(e, "=")
		if _, ours := set[name]; !ours {
			env = append(env, e)
		}
	}
	for k, v := range set {
		if v != "" {
			env = append(env, k+"="+v)
		}
	}
	return env, cleanup, nil
}

// withNode puts node in front of a command that is a script: cdk.json may say just "app.js". Quotes around
// the path are looked through.
func withNode(command string) (string, error) {
	first := firstToken(command)
	if !strings.HasSuffix(strings.Trim(first, `"'`), ".js") {
		return command, nil
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return "", diag.Diagnostics{{
			Severity: diag.Error,
			Summary:  "the app could not be started",
			Detail:   "it is a JavaScript file and node is not on the PATH",
			Next:     "Install Node.js, or give the whole command with --app.",
		}}
	}
	return `"` + node + `" ` + command, nil
}

// firstToken returns the first word of a command, with its quotes.
func firstToken(command string) string {
	command = strings.TrimSpace(command)
	if command == "" {
		return ""
	}
	if q := command[0]; q == '"' || q == '\'' {
		if end := strings.IndexByte(command[1:], q); end >= 0 {
			return command[:end+2]
		}
	}
	word, _, _ := strings.Cut(command, " ")
	return word
}

// output passes on what the app prints and keeps its end. Both streams are written to it.
type output struct {
	mu   sync.Mutex
	to   io.Writer
	last []byte
	cut  bool
}

// Write implements io.Writer. A reader that has gone away does not stop the app.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.to != nil {
		_, _ = o.to.Write(p)
	}
	o.last = append(o.last, p...)
	if over := len(o.last) - tailBytes; over > 0 {
		o.last = append(o.last[:0], o.last[over:]...)
		o.cut = true
	}
	return len(p), nil
}

// tail returns the end of the output in whole lines, without control characters that a terminal would obey.
func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := string(o.last)
	if o.cut {
		if _, rest, ok := strings.Cut(text, "\n"); ok {
			text = "…\n" + rest
		}
	}
	text = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r >= ' ' && r != 0x7f && (r < 0x80 || r > 0x9f) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(text, "�"))
	return strings.TrimSpace(text)
}
