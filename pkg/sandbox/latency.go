package sandbox

import (
	_ "embed"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"
)

// route is which API a resource is made through; it decides the latency.
type route string

const (
	routeCloudControl route = "cc-api"
	routeDirect       route = "sdk"
	routeCustom       route = "custom"
)

// Operations, as Cloud Control names them.
const (
	opCreate = "CREATE"
	opUpdate = "UPDATE"
	opDelete = "DELETE"
)

//go:embed latency.tsv
var latencyTable string

// span is a latency: half of the operations take at most p50, nine of ten at most p90.
type span struct{ p50, p90 time.Duration }

// latencies are spans by type, operation and route; the type "*" holds the defaults.
type latencies map[string]span

func latencyKey(typeName, op string, r route) string { return typeName + " " + op + " " + string(r) }

// parseLatencies reads the embedded table: type, operation, route, p50 and p90 in milliseconds, tab-separated.
func parseLatencies(table string) (latencies, error) {
	out := latencies{}
	for n, line := range strings.Split(table, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 5 {
			return nil, fmt.Errorf("latency table, line %d: %d fields instead of 5", n+1, len(f))
		}
		p50, err := strconv.Atoi(f[3])
		if err != nil {
			return nil, fmt.Errorf("latency table, line %d: %w", n+1, err)
		}
		p90, err := strconv.Atoi(f[4])
		if err != nil {
			return nil, fmt.Errorf("latency table, line %d: %w", n+1, err)
		}
		out[latencyKey(f[0], f[1], route(f[2]))] = span{ms(p50), ms(p90)}
	}
	return out, nil
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// sample draws one latency between p50 and p90. The draw depends on the seed and the key alone, so one seed plays
// the same times again whatever the order of the requests.
func (l latencies) sample(typeName, op string, r route, seed uint64, key string) time.Duration {
	s, ok := l[latencyKey(typeName, op, r)]
	if !ok {
		s = l[latencyKey("*", op, r)]
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%d\x00%s\x00%s\x00%s", seed, typeName, op, key)
	// FNV's high bits vary little between similar keys: fold them over the low ones.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return s.p50 + time.Duration(float64(s.p90-s.p50)*float64(x>>11)/float64(1<<53))
}
