// Package emulators connects tests to the emulator of AWS that run.sh has started, and keeps the book on what
// that emulator cannot do. The tests that use it carry the build tag "emulators".
package emulators

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// The variables that run.sh sets.
const (
	endpointVariable = "SLIPWAY_TEST_ENDPOINT"
	nameVariable     = "SLIPWAY_TEST_EMULATOR"
	reportVariable   = "SLIPWAY_TEST_REPORT"
	// serialVariable asks for one request at a time.
	serialVariable = "SLIPWAY_TEST_SERIAL"
)

// Config returns the configuration of clients for the emulator.
func Config(t *testing.T) aws.Config {
	t.Helper()
	endpoint := os.Getenv(endpointVariable)
	if endpoint == "" {
		t.Fatalf("%s is not set: run pkg/emulators/run.sh", endpointVariable)
	}
	// The racing cases open many connections at once; idle ones are kept so that they do not run out of ports.
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	if os.Getenv(serialVariable) != "" {
		client.Transport = oneAtATime{next: transport, turn: make(chan struct{}, 1)}
	}
	return aws.Config{
		Region:       "us-east-1",
		BaseEndpoint: &endpoint,
		Credentials:  credentials.NewStaticCredentialsProvider("testing", "testing", ""),
		HTTPClient:   client,
	}
}

// oneAtATime sends a request when the one before has been answered. An emulator that checks a condition and
// writes in two steps, without a lock between, keeps AWS's promise to concurrent writers only so. The
// writers still race for their turn.
type oneAtATime struct {
	next http.RoundTripper
	turn chan struct{} // holds the request that is being answered
}

func (o oneAtATime) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case o.turn <- struct{}{}:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	defer func() { <-o.turn }()
	return o.next.RoundTrip(r)
}

// Capability is something that AWS does and an emulator may not.
type Capability struct {
	Name string
	// Cases are the cases of a suite that mean nothing without it. None: what relies on it is tested elsewhere.
	Cases []string
	// Probe tries it with plain calls. It returns what it saw instead, or "" when the emulator has it.
	Probe func(ctx context.Context) (lacks string, err error)
}

// LeaveOut probes the emulator and returns a function for a suite's cases to call first: it leaves out those
// that need a capability whose probe has just shown that the emulator lacks it. Every probe is reported.
func LeaveOut(t *testing.T, capabilities []Capability) func(t *testing.T) {
	t.Helper()
	without := map[string]string{}
	for _, c := range capabilities {
		lacks, err := c.Probe(t.Context())
		if err != nil {
			t.Fatalf("probing %q: %v", c.Name, err)
		}
		report(t, c, lacks)
		if lacks == "" {
			continue
		}
		for _, name := range c.Cases {
			without[strings.ReplaceAll(name, " ", "_")] = c.Name + ": " + lacks
		}
	}
	return func(t *testing.T) {
		t.Helper()
		name := t.Name()[strings.LastIndex(t.Name(), "/")+1:]
		if reason, ok := without[name]; ok {
			t.Skipf("the emulator cannot do this: %s", reason)
		}
	}
}

// Unless is the answer of a probe: what it saw, unless the emulator has the capability.
func Unless(has bool, saw string) string {
	if has {
		return ""
	}
	return saw
}

// report adds a line to the table that run.sh prints: emulator, capability, what it did instead, cases left out.
func report(t *testing.T, c Capability, lacks string) {
	t.Helper()
	cases := "-"
	switch {
	case lacks == "":
		lacks = "yes"
	case len(c.Cases) > 0:
		cases = strings.Join(c.Cases, "; ")
	}
	line := strings.Join([]string{os.Getenv(nameVariable), c.Name, lacks, cases}, "\t")
	path := os.Getenv(reportVariable)
	if path == "" {
		t.Log(line)
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = fmt.Fprintln(f, line)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatalf("reporting what the emulator can do: %v", err)
	}
}
