// Bench measures how long functions take to start: from the start of their process until they ask the Runtime API for
// work, beside a function that does nothing, in turns, so that a busy machine is as busy for all. It exits with 1 when
// one takes more than four times as long. Archives and hello are built for this machine:
//
//	go run ./functions/pack -arch $(go env GOARCH) -out DIR planner provisioner
//	go run ./pkg/emulators/bridge/bench DIR/planner.zip DIR/provisioner.zip
package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/slipway-cdk/slipway/pkg/emulators/bridge"
)

// most is how many times as long as hello a function may take to start.
const most = 4

func main() {
	rounds := flag.Int("rounds", 30, "how often each is started")
	asJSON := flag.Bool("json", false, "print JSON")
	flag.Parse()
	slow, err := measure(flag.Args(), *rounds, *asJSON)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	if slow {
		fmt.Fprintf(os.Stderr, "bench: a function takes more than %d times as long as hello to start\n", most)
		os.Exit(1)
	}
}

// row is what was measured of one function; times are in milliseconds. The shortest starts are compared: others that use the
// machine only ever make a start longer.
type row struct {
	Function string  `json:"function"`
	ArchiveB int     `json:"archiveBytes"`
	InitMS   float64 `json:"initMs"`
	MedianMS float64 `json:"medianMs"`
	Times    float64 `json:"timesHello"`
}

func measure(archives []string, rounds int, asJSON bool) (slow bool, err error) {
	dir, err := os.MkdirTemp("", "slipway-bench-*")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	hello, err := buildHello(dir)
	if err != nil {
		return false, err
	}
	b := bridge.New(bridge.Options{Dir: dir})
	defer func() { _ = b.Close() }()
	names, codes := []string{"hello"}, [][]byte{hello}
	for _, file := range archives {
		archive, err := os.ReadFile(file)
		if err != nil {
			return false, err
		}
		names, codes = append(names, strings.TrimSuffix(filepath.Base(file), ".zip")), append(codes, archive)
	}
	taken := make([][]time.Duration, len(names))
	for round := range rounds {
		for i, name := range names {
			took, err := start(b, name, codes[i], round)
			if err != nil {
				return false, fmt.Errorf("starting %s: %w", name, err)
			}
			taken[i] = append(taken[i], took)
		}
	}
	rows := make([]row, len(names))
	for i, name := range names {
		slices.Sort(taken[i])
		rows[i] = row{Function: name, ArchiveB: len(codes[i]), InitMS: ms(taken[i][0]), MedianMS: ms(taken[i][len(taken[i])/2])}
		rows[i].Times = rows[i].InitMS / rows[0].InitMS
		slow = slow || rows[i].Times > most
	}
	return slow, show(rows, asJSON)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// start invokes a function in a process of its own. What it answers to an empty event is of no interest.
func start(b *bridge.Bridge, name string, archive []byte, round int) (time.Duration, error) {
	code, err := b.AddCode(archive)
	if err != nil {
		return 0, err
	}
	r, err := b.Invoke(context.Background(), bridge.Function{
		Name: name, ARN: "arn:aws:lambda:us-east-1:000000000000:function:" + name, Handler: "bootstrap", TimeoutSeconds: 60, Code: code,
		// Another environment is another definition, which has no process yet.
		Environment: map[string]string{"ROUND": strconv.Itoa(round)},
	}, bridge.Event{Payload: []byte("{}")})
	switch {
	case err != nil:
		return 0, err
	case !r.Cold || r.Init == 0:
		return 0, fmt.Errorf("it was not started: %s", r.Payload)
	}
	return r.Init, nil
}

// buildHello is the archive of a function that does nothing, built as package functions/pack builds.
func buildHello(dir string) ([]byte, error) {
	file := filepath.Join(dir, "hello")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-tags", "lambda.norpc", "-ldflags", "-s -w -buildid=", "-o", file,
		"github.com/slipway-cdk/slipway/pkg/emulators/bridge/bench/hello")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("building hello: %w", err)
	}
	binary, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	h := &zip.FileHeader{Name: "bootstrap", Method: zip.Deflate}
	h.SetMode(0o755)
	w, err := z.CreateHeader(h)
	if err == nil {
		_, err = w.Write(binary)
	}
	if err == nil {
		err = z.Close()
	}
	return archive.Bytes(), err
}

func show(rows []row, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(rows)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "function\tarchive\tmedian\tshortest\ttimes hello\t")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%.1f MB\t%.1f ms\t%.1f ms\t%.1f\t\n", r.Function, float64(r.ArchiveB)/1e6, r.MedianMS, r.InitMS, r.Times)
	}
	return w.Flush()
}
