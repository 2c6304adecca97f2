// Command oracle compares what pkg/diff says of a change with what two judges say that we did not write: npm
// @aws-cdk/cloudformation-diff, and the createOnlyProperties of the registry schemas that PyPI cfn-lint ships.
//
//	oracle pairs  -corpus DIR          write changes of real resources, with our verdicts, as JSON lines
//	oracle report -docs FILE PAIRS CFNDIFF REGISTRY   compare the verdicts; fails when they differ too much
//
// run.sh does all of it. docs/replacement.md says how agreement is counted and lists what is decided otherwise.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("usage: oracle pairs|report")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	switch args[0] {
	case "pairs":
		corpus := flags.String("corpus", "", "directory with assemblies/ and templates/; none when it is absent")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		out := bufio.NewWriterSize(os.Stdout, 1<<20)
		if err := writePairs(out, *corpus); err != nil {
			return err
		}
		return out.Flush()
	case "report":
		docs := flags.String("docs", "docs/replacement.md", "where the decisions are")
		least := flags.Float64("least", 99, "agreement in percent below which the command fails")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		if flags.NArg() != 3 {
			return errors.New("usage: oracle report PAIRS CFNDIFF REGISTRY")
		}
		return compare(os.Stdout, *docs, *least, flags.Args())
	}
	return fmt.Errorf("no command %q", args[0])
}

// subject is one resource and the changes that are made to it: a line of the pairs file. A change touches one
// top-level property, so that only its new value is written.
type subject struct {
	Source     string         `json:"source"` // corpus, generated, schema
	Where      string         `json:"where"`  // template and logical id
	Type       string         `json:"type"`
	Properties map[string]any `json:"properties"`
	Pairs      []pair         `json:"pairs"`
}

type pair struct {
	// Path is slash-separated, as the schema writes it: "*" for items of lists and values of maps.
	Path string `json:"path"`
	Kind string `json:"kind"` // change, add, remove, restate, reorder
	// Property is the top-level property; New its new value, absent when it is removed.
	Property string `json:"property"`
	New      any    `json:"new,omitempty"`
	Gone     bool   `json:"gone,omitempty"`
	// Ours is what pkg/diff says: none, update, maybe, replace.
	Ours string `json:"ours"`
}

// after is the resource's properties with the change.
func (p pair) after(before map[string]any) map[string]any {
	out := make(map[string]any, len(before)+1)
	for k, v := range before {
		out[k] = v
	}
	if p.Gone {
		delete(out, p.Property)
	} else {
		out[p.Property] = p.New
	}
	return out
}

// lines decodes a file of JSON lines.
func lines[T any](r io.Reader, visit func(T) error) error {
	decoder := json.NewDecoder(bufio.NewReaderSize(r, 1<<20))
	decoder.UseNumber()
	for {
		var line T
		if err := decoder.Decode(&line); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := visit(line); err != nil {
			return err
		}
	}
}
