package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// tried are the emulators of the matrix.
var tried = []string{"ministack", "moto"}

// Pass is the result of a check that has run and found nothing. Any other result is why it did not pass: "lacks X" when
// the emulator has no call X, "differs: …" when it does otherwise than AWS.
const pass = "pass"

// results are what the last run of a case has measured: by emulator and check.
type results map[string]map[string]string

func resultsFile(dir, name string) string { return filepath.Join(dir, name+".json") }

// readResults reads what has been measured of a case, nothing when it has not run.
func readResults(dir, name string) (results, error) {
	raw, err := os.ReadFile(resultsFile(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return results{}, nil
	}
	if err != nil {
		return nil, err
	}
	var r results
	return r, json.Unmarshal(raw, &r)
}

func (r results) write(dir, name string) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(resultsFile(dir, name), append(raw, '\n'), 0o644)
}

// Matrix renders what has been measured.
func matrix(dir string, cases []Case) (string, error) {
	var b strings.Builder
	b.WriteString(`# What the direct providers have been seen to do

Every direct provider is put through these checks against two emulators of AWS (` + "`make test-emulators`" + `). A cell tells what the run has
measured: ✓ it ran and passed; a number refers to the notes below; – it has not run. This file is generated
(` + "`go test ./pkg/provider/conformance -update`" + `) from ` + "`pkg/provider/conformance/results`" + `.

| check | what is done |
|---|---|
| create | what is created reads as desired and has its attributes |
| create again | the same create is made again, by another process and by the next attempt: it is the same resource |
| another | another operation creates the same: another resource, or the name is taken and nothing was touched |
| change | every mutable property is changed, alone and with all others, and back; every update is made twice |
| remove | every optional property is removed and goes back to its default |
| delete | deleted, deleted again, changed while gone, created again |
| lost answers | the answer of the nth call of create, update and delete is lost, for every n |
| 5xx | the nth call is answered with a failure, for every n |
| throttled | the nth call is refused for its rate, for every n |
| crash | the process dies after the nth call of the create, for every n |
| calls | no step makes more calls than its golden count |

`)
	b.WriteString("| type | case | emulator |")
	for _, c := range checks {
		b.WriteString(" " + c.name + " |")
	}
	b.WriteString(" calls: create, update, delete |\n|---|---|---|" + strings.Repeat("---|", len(checks)+1) + "\n")
	var notes []string
	slices.SortFunc(cases, func(a, b Case) int { return strings.Compare(a.Type+a.Name, b.Type+b.Name) })
	for _, c := range cases {
		r, err := readResults(dir, c.Name)
		if err != nil {
			return "", fmt.Errorf("the results of %s: %w", c.Name, err)
		}
		for _, emulator := range tried {
			fmt.Fprintf(&b, "| %s | %s | %s |", c.Type, c.Name, emulator)
			for _, check := range checks {
				switch result := r[emulator][check.name]; result {
				case "":
					b.WriteString(" – |")
				case pass:
					b.WriteString(" ✓ |")
				default:
					note := emulator + " " + result
					n := slices.Index(notes, note)
					if n < 0 {
						notes = append(notes, note)
						n = len(notes) - 1
					}
					fmt.Fprintf(&b, " %d |", n+1)
				}
			}
			fmt.Fprintf(&b, " %d, %d, %d |\n", c.Calls.Create, c.Calls.Update, c.Calls.Delete)
		}
	}
	if len(notes) > 0 {
		b.WriteString("\nNotes:\n\n")
		for i, n := range notes {
			fmt.Fprintf(&b, "%d. %s\n", i+1, n)
		}
	}
	return b.String(), nil
}
