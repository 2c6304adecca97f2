package oracle

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

// The stages of a trial.
const (
	stageCreate = "create"
	stageUpdate = "update"
)

// Measured is what the last run of a trial has found.
type Measured struct {
	Types     []string `json:"types"`
	Resources int      `json:"resources"`
	// Create and Update are how many values were compared after each.
	Create int `json:"create"`
	Update int `json:"update"`
	// Deleted: nothing of ours was left after the deletion.
	Deleted bool `json:"deleted"`
	// Left is what CloudFormation's deletion has left.
	Left        []string     `json:"left,omitempty"`
	Differences []Difference `json:"differences,omitempty"`
}

func readMeasured(dir, name string) (m Measured, err error) {
	raw, err := os.ReadFile(filepath.Join(dir, name+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(raw, &m)
}

func (m Measured) write(dir, name string) error {
	raw, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".json"), append(raw, '\n'), 0o644)
}

// report renders what has been measured.
func report(dir string, trials []Trial, explanations []Explanation) (string, error) {
	var b strings.Builder
	b.WriteString(`# The same template both ways

Each template is created, changed and deleted twice on MiniStack: by its own CloudFormation, and by the engine with the direct providers
on its other services. After each step the services are asked for every resource, and all properties, attributes, physical ids
(` + "`Ref`" + `) and outputs are compared, with made-up names and ids replaced by logical ids. After the deletion nothing may be left. This file
is generated (` + "`go test ./pkg/provider/oracle -update`" + `) from ` + "`pkg/provider/oracle/results`" + `, which a run of ` + "`make test-emulators`" + `
compares with what it measures. A number in brackets counts values that differ; every one of them is explained below.

| template | what | resources | values after the create | after the update | left by our deletion | left by CloudFormation's |
|---|---|---|---|---|---|---|
`)
	occurs := make([][]string, len(explanations))
	samples := make([]Difference, len(explanations))
	var sum Measured
	differing := map[string]int{}
	types := map[string]bool{}
	for _, t := range trials {
		m, err := readMeasured(dir, t.Name)
		if err != nil {
			return "", err
		}
		if m.Resources == 0 {
			return "", fmt.Errorf("%s has not run", t.Name)
		}
		in := map[string]int{}
		for _, d := range m.Differences {
			in[d.Stage]++
			differing[d.Stage]++
			i := slices.IndexFunc(explanations, func(e Explanation) bool { return e.explains(t.Name, d) })
			if i < 0 {
				return "", fmt.Errorf("%s: %s of %s is not explained", t.Name, d.What, d.LogicalID)
			}
			samples[i] = d
			if !slices.Contains(occurs[i], t.Name) {
				occurs[i] = append(occurs[i], t.Name)
			}
		}
		for _, typeName := range m.Types {
			types[typeName] = true
		}
		left := "nothing"
		if len(m.Left) > 0 {
			left = strings.Join(m.Left, ", ")
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %s | nothing | %s |\n", t.Name, t.About, m.Resources, counted(m.Create, in[stageCreate]), counted(m.Update, in[stageUpdate]), left)
		sum.Resources += m.Resources
		sum.Create += m.Create
		sum.Update += m.Update
	}
	fmt.Fprintf(&b, "| **%d templates** | **%d types** | **%d** | **%s** | **%s** | | |\n", len(trials), len(types), sum.Resources,
		counted(sum.Create, differing[stageCreate]), counted(sum.Update, differing[stageUpdate]))
	fmt.Fprintf(&b, "\nMiniStack's CloudFormation refuses %s and %s, as a test sees: there is nothing to compare with.\n",
		strings.Join(elsewhere[:len(elsewhere)-1], ", "), elsewhere[len(elsewhere)-1])
	b.WriteString("\n## Differences\n\n| type | what | ours | CloudFormation's | AWS is with | because | templates |\n|---|---|---|---|---|---|---|\n")
	for i, e := range explanations {
		right := map[string]string{"ours": "ours", "theirs": "CloudFormation's", "both": "both"}[e.Right]
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | [%s](%s) | %s |\n", e.Type, e.What, short(samples[i].Ours), short(samples[i].Theirs), right, e.Because, e.Page, strings.Join(occurs[i], ", "))
	}
	return b.String(), nil
}

func counted(values, differing int) string {
	if differing == 0 {
		return fmt.Sprint(values)
	}
	return fmt.Sprintf("%d (%d)", values, differing)
}

// short is a value as a table can show it.
func short(s string) string {
	s = strings.ReplaceAll(s, "|", "\\|")
	if r := []rune(s); len(r) > 90 {
		s = string(r[:89]) + "…"
	}
	return "`" + s + "`"
}
