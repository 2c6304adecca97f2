package main

import (
	"fmt"
	"os"
	"strings"
)

// exception is a place where we do not replace although an oracle does: a row of the table in the documentation
// that stands below the heading "Updated in place, against an oracle".
type exception struct{ typ, path, page string }

const heading = "## Updated in place, against an oracle"

// exceptions reads them from the documentation, so that no exception is without its reason. A row is
// "| type | path | why | page |"; a row without an AWS page is an error.
func exceptions(file string) ([]exception, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	_, section, found := strings.Cut(string(text), heading+"\n")
	if !found {
		return nil, fmt.Errorf("%s has no section %q", file, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var out []exception
	for _, line := range strings.Split(section, "\n") {
		if !strings.HasPrefix(line, "| `AWS::") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), "|")
		if len(cells) != 4 {
			return nil, fmt.Errorf("%s: a row has %d cells, want type, path, why, page: %s", file, len(cells), line)
		}
		e := exception{typ: code(cells[0]), path: code(cells[1]), page: strings.TrimSpace(cells[3])}
		if !strings.Contains(e.page, "https://docs.aws.amazon.com/") {
			return nil, fmt.Errorf("%s: %s %s names no page of the AWS documentation", file, e.typ, e.path)
		}
		out = append(out, e)
	}
	return out, nil
}

func code(cell string) string { return strings.Trim(cell, "` ") }

// covers tells whether a path is the exception's or lies below it.
func (e exception) covers(path string) bool {
	return path == e.path || strings.HasPrefix(path, e.path+"/")
}
