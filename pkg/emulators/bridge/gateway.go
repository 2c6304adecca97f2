package bridge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/slipway-cdk/slipway/pkg/emulators/faultproxy"
	"github.com/slipway-cdk/slipway/pkg/iampolicy/calls"
)

// Gateway is where functions find AWS: each at an address of its own, behind which is the emulator. So the book knows
// whose call it was.
type Gateway struct {
	target *url.URL
	next   *http.Transport
	// turn, where it is not nil, holds the request that is being answered.
	turn chan struct{}

	mu      sync.Mutex
	book    *book
	servers map[string]*http.Server
	urls    map[string]string
}

// NewGateway makes a gateway in front of the emulator at target. An emulator that does not isolate concurrent requests
// is sent one at a time.
func NewGateway(target string, oneAtATime bool) (*Gateway, error) {
	u, err := url.Parse(target)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("the address of the emulator, %q, is none: %w", target, err)
	}
	g := &Gateway{
		target: u, next: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
		servers: map[string]*http.Server{}, urls: map[string]string{},
	}
	if oneAtATime {
		g.turn = make(chan struct{}, 1)
	}
	return g, nil
}

// Record has the calls written into a bridge's book.
func (g *Gateway) Record(b *Bridge) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.book = &b.book
}

// Endpoint returns the address of AWS for a function.
func (g *Gateway) Endpoint(function string) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if address, ok := g.urls[function]; ok {
		return address, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("serving the calls of function %s: %w", function, err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.pass(w, r, function) })} //nolint:gosec // it serves this machine's tests
	go func() { _ = server.Serve(l) }()
	g.servers[function], g.urls[function] = server, "http://"+l.Addr().String()
	return g.urls[function], nil
}

// Close ends all addresses.
func (g *Gateway) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.servers {
		_ = s.Close()
	}
	g.next.CloseIdleConnections()
	return nil
}

// pass sends a request on and writes it down, unless function is empty.
func (g *Gateway) pass(w http.ResponseWriter, r *http.Request, function string) {
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the caller is gone
	}
	if g.turn != nil && function != "" {
		select {
		case g.turn <- struct{}{}:
			defer func() { <-g.turn }()
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
	status, received, err := g.send(w, r, sent)
	if err != nil {
		panic(http.ErrAbortHandler) // closes the connection: there is no answer
	}
	g.mu.Lock()
	book := g.book
	g.mu.Unlock()
	if book == nil || function == "" {
		return
	}
	c := Call{Function: function, Status: status, Sent: len(sent), Received: received}
	c.Service, c.Operation = faultproxy.Name(r, sent)
	switch c.Service {
	case "s3":
		c.Operation, c.Resource = s3Operation(r), strings.TrimPrefix(r.URL.Path, "/")
	case "dynamodb":
		c.Resource = table(sent)
	}
	c.authorize(r, sent)
	book.called(c)
}

// authorize notes what the call needs to be allowed. A function's own access key is the id of its account (environment).
func (c *Call) authorize(r *http.Request, body []byte) {
	s, ok := calls.SignatureOf(r)
	if !ok {
		c.Unread = "it is not signed"
		return
	}
	if c.Assumed = !accountID.MatchString(s.AccessKey); c.Assumed {
		return
	}
	in := calls.Place{Account: s.AccessKey}
	needs, err := calls.Of(r, body, in)
	if err != nil {
		c.Unread = err.Error()
		return
	}
	if c.Status == http.StatusNotFound {
		needs = append(needs, calls.Absent(r, in)...)
	}
	c.Needs = needs
}

var accountID = regexp.MustCompile(`^[0-9]{12}$`)

func (g *Gateway) send(w http.ResponseWriter, r *http.Request, sent []byte) (status, received int, err error) {
	out, err := http.NewRequestWithContext(r.Context(), r.Method, strings.TrimSuffix(g.target.String(), "/")+r.URL.RequestURI(), bytes.NewReader(sent))
	if err != nil {
		return 0, 0, err
	}
	// The host becomes the emulator's: it is in the addresses of queues, which are the same for everybody.
	out.Header = r.Header.Clone()
	for _, name := range []string{"Connection", "Expect", "Transfer-Encoding"} {
		out.Header.Del(name)
	}
	answer, err := g.next.RoundTrip(out)
	if err != nil {
		return 0, 0, err
	}
	defer answer.Body.Close()
	for name, values := range answer.Header {
		if name != "Connection" && name != "Transfer-Encoding" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(answer.StatusCode)
	n, err := io.Copy(w, answer.Body)
	return answer.StatusCode, int(n), err
}

// s3Operation names the operations of S3 that the control plane uses; anything else is method and the query's names.
// https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations.html
func s3Operation(r *http.Request) string {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	q := r.URL.Query()
	switch {
	case bucket == "":
		return r.Method
	case key == "" && q.Get("list-type") == "2":
		return "ListObjectsV2"
	case key == "" && r.Method == http.MethodPost && q.Has("delete"):
		return "DeleteObjects"
	case key == "" && r.Method == http.MethodHead:
		return "HeadBucket"
	case key == "":
		return r.Method + " bucket " + names(q)
	case r.Method == http.MethodPut && r.Header.Get("X-Amz-Copy-Source") != "":
		return "CopyObject"
	case r.Method == http.MethodPost && q.Has("uploads"):
		return "CreateMultipartUpload"
	case r.Method == http.MethodPut && q.Has("uploadId"):
		return "UploadPart"
	case r.Method == http.MethodPost && q.Has("uploadId"):
		return "CompleteMultipartUpload"
	}
	operation := map[string]string{
		http.MethodGet: "GetObject", http.MethodHead: "HeadObject", http.MethodPut: "PutObject", http.MethodDelete: "DeleteObject",
	}[r.Method]
	if operation == "" {
		return r.Method + " object " + names(q)
	}
	return operation
}

func names(q url.Values) string {
	var out []string
	for name := range q {
		out = append(out, name)
	}
	return strings.Join(out, ",")
}

// table is the table that a call of DynamoDB names, the first one of a transaction.
func table(body []byte) string {
	type named struct{ TableName string }
	var call struct {
		TableName     string
		TransactItems []map[string]named
		RequestItems  map[string]json.RawMessage
	}
	if json.Unmarshal(body, &call) != nil {
		return ""
	}
	if call.TableName != "" {
		return call.TableName
	}
	for _, item := range call.TransactItems {
		for _, n := range item {
			return n.TableName
		}
	}
	for name := range call.RequestItems {
		return name
	}
	return ""
}
