//go:build ignore

// Mutantcover completes a coverage profile for a tool that plants faults only where it takes the code to be covered. Go's
// profile has blocks of statements: the conditions of a switch's cases lie between them, and constants outside of all,
// though a test that reaches the switch evaluates the ones, and every test uses the others.
//
//	go run .ci/mutantcover.go PROFILE [ONLY]
//
// ONLY is a file of positions, "file.go:line:column" or "file.go" for all of a file: where it is given, nothing else is
// left covered, and so nothing else is judged.
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"os"
	"path"
	"strings"

	"golang.org/x/tools/cover"
)

const module = "github.com/slipway-cdk/slipway/"

func main() {
	log.SetFlags(0)
	if err := complete(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func complete(args []string) error {
	profiles, err := cover.ParseProfiles(args[0])
	if err != nil {
		return err
	}
	only, err := positions(args[1:])
	if err != nil {
		return err
	}
	var out bytes.Buffer
	out.WriteString("mode: set\n")
	for _, p := range profiles {
		name := strings.TrimPrefix(p.FileName, module)
		blocks, err := conditions(name, p.Blocks)
		if err != nil {
			return err
		}
		for _, b := range append(p.Blocks, blocks...) {
			if b.Count > 0 && (only == nil || only[path.Base(name)] != nil) {
				for _, b := range within(b, only[path.Base(name)]) {
					fmt.Fprintf(&out, "%s:%d.%d,%d.%d 1 1\n", p.FileName, b.StartLine, b.StartCol, b.EndLine, b.EndCol)
				}
			}
		}
	}
	return os.WriteFile(args[0], out.Bytes(), 0o644)
}

type position struct{ line, column int }

// positions reads what alone is to be judged: of each file its positions, or none for all of it.
func positions(args []string) (map[string][]position, error) {
	if len(args) == 0 || args[0] == "" {
		return nil, nil
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return nil, err
	}
	only := map[string][]position{}
	for _, line := range strings.Fields(string(text)) {
		file, at, some := strings.Cut(line, ":")
		if only[file] == nil {
			only[file] = []position{}
		}
		var p position
		if some {
			if _, err := fmt.Sscanf(at, "%d:%d", &p.line, &p.column); err != nil {
				return nil, fmt.Errorf("%s: %w", line, err)
			}
			only[file] = append(only[file], p)
		}
	}
	return only, nil
}

// within are the positions that lie in a block, each as a block of its own; the block itself where there are none to
// choose from.
func within(b cover.ProfileBlock, only []position) []cover.ProfileBlock {
	if len(only) == 0 {
		return []cover.ProfileBlock{b}
	}
	var out []cover.ProfileBlock
	for _, p := range only {
		if contains(b, p) {
			out = append(out, cover.ProfileBlock{StartLine: p.line, StartCol: p.column, EndLine: p.line, EndCol: p.column})
		}
	}
	return out
}

func contains(b cover.ProfileBlock, p position) bool {
	after := p.line > b.StartLine || p.line == b.StartLine && p.column >= b.StartCol
	return after && (p.line < b.EndLine || p.line == b.EndLine && p.column <= b.EndCol)
}

// conditions are blocks for what a file's own blocks leave out: the conditions of switches that are reached, and the
// values of what is declared outside of functions.
func conditions(name string, blocks []cover.ProfileBlock) ([]cover.ProfileBlock, error) {
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out []cover.ProfileBlock
	add := func(from, to token.Pos) {
		a, b := files.Position(from), files.Position(to)
		out = append(out, cover.ProfileBlock{StartLine: a.Line, StartCol: a.Column, EndLine: b.Line, EndCol: b.Column, Count: 1})
	}
	for _, d := range tree.Decls {
		if d, ok := d.(*ast.GenDecl); ok && (d.Tok == token.CONST || d.Tok == token.VAR) {
			add(d.Pos(), d.End())
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		s, ok := n.(*ast.SwitchStmt)
		if !ok {
			return true
		}
		at := files.Position(s.Pos())
		for _, b := range blocks {
			if b.Count > 0 && contains(b, position{at.Line, at.Column}) {
				for _, c := range s.Body.List {
					add(c.Pos(), c.(*ast.CaseClause).Colon)
				}
				break
			}
		}
		return true
	})
	return out, nil
}
