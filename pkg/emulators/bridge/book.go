package bridge

import (
	"slices"
	"sync"

	"github.com/slipway-cdk/slipway/pkg/iampolicy"
)

// Invocation is what the bridge remembers of one.
type Invocation struct {
	Function  string `json:"function"`
	RequestID string `json:"requestId"`
	ErrorType string `json:"errorType,omitempty"`
	Cold      bool   `json:"cold,omitempty"`
	// InitMS and DurationMS are in milliseconds of this machine, which is not Lambda.
	InitMS     float64 `json:"initMs,omitempty"`
	DurationMS float64 `json:"durationMs"`
	// Payload and Response are sizes in bytes.
	Payload  int `json:"payload"`
	Response int `json:"response"`
}

// Call is a call of AWS that a function has made.
type Call struct {
	Function string `json:"function"`
	// Service is the signing name: "dynamodb".
	Service string `json:"service"`
	// Operation is the name in the service's API: "PutItem". Of REST services other than S3 it is method and path.
	Operation string `json:"operation"`
	// Resource is the table, or bucket and key, that the call names.
	Resource string `json:"resource,omitempty"`
	Status   int    `json:"status"`
	// Sent and Received are the sizes of the bodies in bytes.
	Sent     int `json:"sent"`
	Received int `json:"received"`
	// Assumed is a call under the credentials of a role that the function has assumed, not its own.
	Assumed bool `json:"assumed,omitempty"`
	// Needs are the actions of IAM that the function needs for a call under its own credentials, and Unread says why they
	// could not be told.
	Needs  []iampolicy.Call `json:"needs,omitempty"`
	Unread string           `json:"unread,omitempty"`
}

// book holds invocations and calls in the order of their ends.
type book struct {
	mu          sync.Mutex
	invocations []Invocation
	calls       []Call
}

func (k *book) invoked(f Function, e Event, r Result) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.invocations = append(k.invocations, Invocation{
		Function: f.Name, RequestID: e.RequestID, ErrorType: r.ErrorType, Cold: r.Cold,
		InitMS: float64(r.Init.Microseconds()) / 1000, DurationMS: float64(r.Duration.Microseconds()) / 1000,
		Payload: len(e.Payload), Response: len(r.Payload),
	})
}

func (k *book) called(c Call) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls = append(k.calls, c)
}

// Book is what has happened since a mark.
type Book struct {
	Invocations []Invocation `json:"invocations"`
	Calls       []Call       `json:"calls"`
}

// Book returns what has ended since the bridge was made or Forget was called.
func (b *Bridge) Book() Book {
	b.book.mu.Lock()
	defer b.book.mu.Unlock()
	return Book{Invocations: slices.Clone(b.book.invocations), Calls: slices.Clone(b.book.calls)}
}

// Forget empties the book.
func (b *Bridge) Forget() {
	b.book.mu.Lock()
	defer b.book.mu.Unlock()
	b.book.invocations, b.book.calls = nil, nil
}
