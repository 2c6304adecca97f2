package sandbox

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/schema"
)

// Options tune a sandbox. The zero value is an instant one on real time with unpredictable ids.
type Options struct {
	// Speed says how many times faster than AWS operations are: 60 makes a minute a second. 0 is instant: an
	// operation is over when its status is first asked for.
	Speed float64
	// Clock tells the time; nil is real time. Operations end by comparing times; only the handlers of custom
	// resources sleep. It must not be scaled itself: Speed does that.
	Clock clock.Clock
	// Seed makes ids, names and latencies repeatable. 0 draws a new one. Two processes that share a directory must
	// not share a seed other than 0: they would make up the same ids.
	Seed uint64
	// Types looks up resource types; nil is the embedded index.
	Types func(name string) (*schema.Type, bool)
}

// Sandbox is a simulated AWS in one SQLite file. Several processes may open one directory at once. All methods are
// safe for concurrent use.
type Sandbox struct {
	db        *database
	clock     clock.Clock
	speed     float64
	seed      uint64
	types     func(string) (*schema.Type, bool)
	shapes    map[string]*shape
	relations relations
	latencies latencies

	mu     sync.Mutex // guards rng, calls and server
	rng    *rand.Rand
	calls  map[string]int
	server *http.Server
	url    string
}

// Open opens or makes the sandbox in dir (file DatabaseName).
func Open(ctx context.Context, dir string, opts Options) (*Sandbox, error) {
	s := &Sandbox{clock: opts.Clock, speed: opts.Speed, seed: opts.Seed, types: opts.Types, calls: map[string]int{}}
	if s.clock == nil {
		s.clock = clock.Real{}
	}
	if s.types == nil {
		s.types = schema.Lookup
	}
	if s.seed == 0 {
		var b [8]byte
		if _, err := crand.Read(b[:]); err != nil {
			return nil, fmt.Errorf("seeding the sandbox: %w", err)
		}
		s.seed = binary.LittleEndian.Uint64(b[:])
	}
	s.rng = rand.New(rand.NewPCG(s.seed, s.seed>>17))
	var err error
	if s.shapes, err = parseShapes(shapesTable); err != nil {
		return nil, err
	}
	if s.relations, err = parseRelations(relationsTable); err != nil {
		return nil, err
	}
	if s.latencies, err = parseLatencies(latencyTable); err != nil {
		return nil, err
	}
	if s.db, err = openDatabase(ctx, dir); err != nil {
		return nil, err
	}
	return s, nil
}

// Serve starts the HTTP server on a free loopback port, once, and returns its URL: the endpoint of Cloud Control,
// STS and the direct API.
func (s *Sandbox) Serve() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		return s.url, nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("starting the sandbox's server: %w", err)
	}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	s.url = "http://" + listener.Addr().String()
	go func(server *http.Server) { _ = server.Serve(listener) }(s.server)
	return s.url, nil
}

// Close stops the server and closes the file.
func (s *Sandbox) Close() error {
	s.mu.Lock()
	server := s.server
	s.mu.Unlock()
	var err error
	if server != nil {
		err = server.Close()
	}
	return errors.Join(err, s.db.close())
}

func (s *Sandbox) now() time.Time { return s.clock.Now() }

// draw lends the source of randomness, in a maker that has nothing else.
func (s *Sandbox) draw(use func(*maker)) {
	s.mu.Lock()
	rng := rand.New(rand.NewPCG(s.rng.Uint64(), s.rng.Uint64()))
	s.mu.Unlock()
	use(&maker{rng: rng})
}

func (s *Sandbox) count(call string) {
	s.mu.Lock()
	s.calls[call]++
	s.mu.Unlock()
}

// Calls is how often each operation was called on this Sandbox since it was opened: "CreateResource",
// "GetCallerIdentity", "Sandbox.Create".
func (s *Sandbox) Calls() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]int, len(s.calls))
	for k, n := range s.calls {
		out[k] = n
	}
	return out
}
