// Package faultproxy stands between clients and an emulator of AWS, and does to chosen calls what networks and busy
// services do to them: refuses them for their rate, fails, loses or halves their answers, holds them, delivers them late or
// twice. Every refusal speaks the wire protocol of the service that it comes from.
package faultproxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Fault is what happens to a call.
type Fault string

// The faults. Of the calls that Throttled, Failing, Unavailable and Held meet the service never hears.
const (
	// None: the call is passed on.
	None Fault = ""
	// Throttled: the service refuses it for its rate, with the code that it has for that.
	Throttled Fault = "throttled"
	// Failing: the service answers that it has failed (500).
	Failing Fault = "failing"
	// Unavailable: something in front of the service answers 503, with a page that is no answer of the service.
	Unavailable Fault = "unavailable"
	// Lost: the call has its effect, and the connection is closed instead of an answer.
	Lost Fault = "lost"
	// Held: there is no answer until the caller gives up.
	Held Fault = "held"
	// Late: the connection is closed, and the call reaches the service all the same: after the next call has been answered.
	Late Fault = "late"
	// Twice: the call is answered, and reaches the service once more after the next call has been answered.
	Twice Fault = "twice"
	// Cut: the call has its effect, and the connection is closed in the middle of the answer.
	Cut Fault = "cut"
)

// OperationHeader names the operation of a call, for callers that know it: REST calls do not say. It is not passed on.
const OperationHeader = "X-Faultproxy-Operation"

// Call is a call that the proxy has met.
type Call struct {
	// N counts the calls since the last Use, from 1.
	N int
	// Service is the signing name: "sqs".
	Service string
	// Operation is "CreateQueue"; of a REST call that has no OperationHeader, method and path.
	Operation string
	Fault     Fault
}

// Proxy is a running proxy. It is safe for concurrent use.
type Proxy struct {
	target   *url.URL
	listener net.Listener
	server   *http.Server
	next     *http.Transport
	held     chan struct{}

	mu      sync.Mutex
	rule    func(Call) Fault
	calls   []Call
	pending []delivery // on their way to the service
	failed  error      // of the emulator
}

// delivery is a request that can be sent to the service any number of times.
type delivery struct {
	method, uri, host string
	header            http.Header
	body              []byte
}

// Start begins to serve on a port of this machine, in front of the service at target.
func Start(target string) (*Proxy, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("the address of the emulator: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the proxy: %w", err)
	}
	p := &Proxy{target: u, listener: l, next: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}, held: make(chan struct{})}
	p.server = &http.Server{Handler: p} //nolint:gosec // it serves this process's own tests
	go func() { _ = p.server.Serve(l) }()
	return p, nil
}

// URL is the proxy's address.
func (p *Proxy) URL() string { return "http://" + p.listener.Addr().String() }

// Close ends the proxy, with all connections.
func (p *Proxy) Close() error {
	err := p.server.Close()
	p.next.CloseIdleConnections()
	return err
}

// Use counts calls from 1 again and asks rule about each; nil lets all pass. What is still on its way is delivered before.
func (p *Proxy) Use(rule func(Call) Fault) {
	p.Deliver()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule, p.calls = rule, nil
}

// Calls returns those since the last Use.
func (p *Proxy) Calls() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// Err is what kept a call from the emulator, nil when all have been answered.
func (p *Proxy) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// Deliver lets what is late or comes twice reach the service now.
func (p *Proxy) Deliver() {
	p.mu.Lock()
	late := p.pending
	p.pending = nil
	p.mu.Unlock()
	for _, d := range late {
		if a, err := p.send(context.Background(), d); err == nil {
			a.discard()
		}
	}
}

// Transport wraps a client's transport so that it gives up a call that is held, as soon as it is: the answer is
// net/http's own to a caller whose patience has ended.
func (p *Proxy) Transport(next http.RoundTripper) http.RoundTripper {
	return impatient{proxy: p, next: next}
}

type impatient struct {
	proxy *Proxy
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (i impatient) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	answered := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-i.proxy.held:
			cancel(errGaveUp)
		case <-answered:
		}
	})
	response, err := i.next.RoundTrip(r.WithContext(ctx))
	close(answered)
	watching.Wait()
	if err != nil {
		cancel(nil)
		return nil, err
	}
	response.Body = &body{ReadCloser: response.Body, done: func() { cancel(nil) }}
	return response, nil
}

// errGaveUp is what net/http returns for a call that took too long: a net.Error that is a timeout.
var errGaveUp error = timeout{}

type timeout struct{}

func (timeout) Error() string   { return "the caller has waited long enough" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

// body lets go of a request's context when its answer has been read.
type body struct {
	io.ReadCloser
	done func()
}

func (b *body) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the caller is gone
	}
	d := delivery{method: r.Method, uri: r.URL.RequestURI(), host: r.Host, header: r.Header.Clone(), body: content}
	from := speakerOf(d)
	d.header.Del(OperationHeader)
	fault := p.meet(from)
	switch fault {
	case Throttled:
		from.throttle(w)
		return
	case Failing:
		from.fail(w)
		return
	case Unavailable:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "<html><body><h1>503 Service Unavailable</h1></body></html>")
		return
	case Held:
		select {
		case p.held <- struct{}{}:
			<-r.Context().Done()
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	case Late:
		p.later(d)
		panic(http.ErrAbortHandler) // closes the connection
	}
	a, err := p.send(context.WithoutCancel(r.Context()), d)
	if err != nil {
		p.mu.Lock()
		p.failed = err
		p.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
	// What was on its way arrives now, after this call and before anybody hears of it.
	p.Deliver()
	switch fault {
	case Lost:
		a.discard()
		panic(http.ErrAbortHandler)
	case Cut:
		a.cut(w)
		panic(http.ErrAbortHandler)
	case Twice:
		p.later(d)
	}
	a.pass(w)
}

// meet counts a call and decides about it.
func (p *Proxy) meet(from speaker) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := Call{N: len(p.calls) + 1, Service: from.service, Operation: from.operation}
	if p.rule != nil {
		c.Fault = p.rule(c)
	}
	p.calls = append(p.calls, c)
	return c.Fault
}

func (p *Proxy) later(d delivery) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending = append(p.pending, d)
}

// send passes a request on.
func (p *Proxy) send(ctx context.Context, d delivery) (*answer, error) {
	r, err := http.NewRequestWithContext(ctx, d.method, strings.TrimSuffix(p.target.String(), "/")+d.uri, bytes.NewReader(d.body))
	if err != nil {
		return nil, err
	}
	r.Header, r.Host = d.header.Clone(), d.host
	for _, name := range []string{"Connection", "Expect", "Transfer-Encoding"} {
		r.Header.Del(name)
	}
	response, err := p.next.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("passing a call on: %w", err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the answer of a call: %w", err)
	}
	return &answer{response: response, body: content, head: d.method == http.MethodHead}, nil
}

// answer is what the service has said.
type answer struct {
	response *http.Response
	body     []byte
	head     bool
}

func (*answer) discard() {}

// pass gives the answer to the caller.
func (a *answer) pass(w http.ResponseWriter) {
	for name, values := range a.response.Header {
		if name != "Connection" && name != "Transfer-Encoding" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(a.response.StatusCode)
	if !a.head {
		_, _ = w.Write(a.body)
	}
}

// cut gives the first half of the answer: of its body or, where it has none, of its head.
func (a *answer) cut(w http.ResponseWriter) {
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		return
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		return
	}
	defer conn.Close() //nolint:errcheck // that is what it is about
	whole := *a.response
	whole.Body, whole.ContentLength, whole.TransferEncoding = io.NopCloser(bytes.NewReader(a.body)), int64(len(a.body)), nil
	head, err := httputil.DumpResponse(&whole, false)
	if err != nil {
		return
	}
	if len(a.body) == 0 || a.head {
		_, _ = conn.Write(head[:len(head)/2])
		return
	}
	_, _ = conn.Write(append(head, a.body[:len(a.body)/2]...))
}
