package calls

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/slipway-cdk/slipway/pkg/iampolicy"
)

// Recorded is a call and who has made it. A file of them has one on each line, as JSON.
type Recorded struct {
	Principal string `json:"principal"`
	iampolicy.Call
}

// Recorder notes the calls of an HTTP client. It is safe for concurrent use.
type Recorder struct {
	Next http.RoundTripper // http.DefaultTransport when nil
	// Principals names who has an access key; calls under another key are not noted. The credentials of a role that
	// was assumed are such others: they are held against the role's policies, not the caller's.
	Principals map[string]string
	Place      Place

	mu    sync.Mutex
	calls map[string]Recorded // by their JSON
	times map[string]int      // by action
	errs  []error
}

// RoundTrip implements http.RoundTripper.
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	next := r.Next
	if next == nil {
		next = http.DefaultTransport
	}
	s, _ := SignatureOf(req)
	principal, ok := r.Principals[s.AccessKey]
	if !ok {
		return next.RoundTrip(req)
	}
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, fmt.Errorf("reading a request's body: %w", err)
		}
		_ = req.Body.Close()
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	made, err := Of(req, body, r.Place)
	out, answer := next.RoundTrip(req)
	if answer == nil && out.StatusCode == http.StatusNotFound {
		made = append(made, Absent(req, r.Place)...)
	}
	r.note(principal, made, err)
	return out, answer
}

func (r *Recorder) note(principal string, made []iampolicy.Call, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("%s: %w", principal, err))
	}
	if r.calls == nil {
		r.calls, r.times = map[string]Recorded{}, map[string]int{}
	}
	for _, c := range made {
		r.times[c.Action]++
		rec := Recorded{Principal: principal, Call: General(c)}
		b, err := json.Marshal(rec)
		if err != nil {
			r.errs = append(r.errs, err)
			continue
		}
		r.calls[string(b)] = rec
	}
}

// Calls returns what was noted, each call once, in the order of a file. The error tells of requests that are not
// known.
func (r *Recorder) Calls() ([]Recorded, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Recorded, 0, len(r.calls))
	for _, c := range r.calls {
		out = append(out, c)
	}
	sortCalls(out)
	return out, errors.Join(r.errs...)
}

// Times returns how often each action was called, by all principals together. What a transaction does is counted one
// by one.
func (r *Recorder) Times() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.times)
}

func sortCalls(out []Recorded) {
	slices.SortFunc(out, func(a, b Recorded) int {
		return strings.Compare(a.Principal+" "+a.Action+" "+a.Resource+fmt.Sprint(a.Context), b.Principal+" "+b.Action+" "+b.Resource+fmt.Sprint(b.Context))
	})
}

// What differs from one recording to the next and no policy looks at.
var (
	runID  = regexp.MustCompile(`\d{8}T\d{9}Z-[0-9a-f]{8}`)
	hour   = regexp.MustCompile(`\d{8}T\d{2}$`)
	hashed = regexp.MustCompile(`[0-9a-f]{32,}`)
	number = regexp.MustCompile(`/(waves|decisions)/\d+`)
	later  = regexp.MustCompile(`(event|op)\.[^/]*\{hash\}`)
)

// General puts the same in place of what differs from run to run: ids of runs, hashes, the numbers of waves,
// the hour whose runs a sweep looks for.
func General(c iampolicy.Call) iampolicy.Call {
	general := func(s string) string {
		s = hour.ReplaceAllString(runID.ReplaceAllString(s, "{run}"), "{hour}")
		s = hashed.ReplaceAllString(s, "{hash}")
		return later.ReplaceAllString(number.ReplaceAllString(s, "/$1/{n}"), "$1.{hash}")
	}
	c.Resource = general(c.Resource)
	if c.Context != nil {
		context := map[string][]string{}
		for k, values := range c.Context {
			for _, v := range values {
				context[k] = append(context[k], general(v))
			}
			context[k] = unique(context[k])
		}
		c.Context = context
	}
	return c
}

// Write writes calls, one on each line.
func Write(w io.Writer, recorded []Recorded) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, c := range recorded {
		if err := enc.Encode(c); err != nil {
			return fmt.Errorf("writing a recorded call: %w", err)
		}
	}
	return nil
}

// Read reads what Write has written, from several files one after the other, each call once.
func Read(files ...io.Reader) ([]Recorded, error) {
	seen := map[string]bool{}
	var out []Recorded
	for _, f := range files {
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if len(bytes.TrimSpace(lines.Bytes())) == 0 || seen[lines.Text()] {
				continue
			}
			seen[lines.Text()] = true
			var c Recorded
			if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
				return nil, fmt.Errorf("reading a recorded call: %w", err)
			}
			out = append(out, c)
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("reading recorded calls: %w", err)
		}
	}
	sortCalls(out)
	return out, nil
}
