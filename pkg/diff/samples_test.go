package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/template"
)

const samples = "../../../shared/reference/cdkd-samples"

// sampleDifferences are the records of the samples that differ from the template beside them, with the reason.
// Every other record has to be up to date.
func sampleDifferences(step string) (want, why string) {
	const rolledBack, halfWay = "the deploy was rolled back", "the deploy failed half way"
	chapter, name, _ := strings.Cut(step, "/")
	number, _, _ := strings.Cut(name, "-")
	switch chapter {
	case "01-basic":
		if number >= "04" && number <= "10" {
			return "update TopicBFC7AF6E DisplayName\nreplace Param165332EC Name!always\ncreate Extra6C4EAC05", "the template's deploy was refused or rolled back"
		}
	case "04-secrets":
		return "update Embedded Value\nupdate Q DisplayName", "cdkd records what a plain SSM reference resolves to, not the reference"
	case "06-failures":
		switch number {
		case "02", "05":
			return "update A VisibilityTimeout\nupdate T DisplayName\ncreate B\ncreate C\ncreate Bad\ncreate Never\ndelete Old", rolledBack
		case "03", "04", "06":
			return "create Bad\ncreate Never\ndelete Old", halfWay
		case "10":
			return "create Bad\ncreate Never", halfWay
		case "12":
			return "create A\ncreate T\ncreate C\ncreate Bad\ncreate Never", rolledBack
		case "00", "20":
			return "create Main\ncreate DevOnly\ncreate Joined\ncreate After\ncreate Meta", rolledBack
		}
	case "09-lock-interrupt":
		if number == "06" || number == "07" {
			return "create P7\ncreate P8\ncreate P9", "the deploy was interrupted"
		}
	case "14-misc":
		if number == "04" {
			return "create Param165332EC", "it was taken out of the record"
		}
	}
	return "", ""
}

// TestSamples loads every record that cdkd has written, saves it again without loss, and compares it with the
// template that was deployed: nothing may differ but what sampleDifferences explains. The table is printed (-v).
func TestSamples(t *testing.T) {
	if _, err := os.Stat(samples); err != nil {
		t.Skip("the samples are not beside the repository")
	}
	var paths []string
	err := filepath.WalkDir(samples, func(path string, _ os.DirEntry, err error) error {
		if err == nil && filepath.Base(path) == "state.json" {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) < 70 {
		t.Errorf("only %d records", len(paths))
	}
	var table strings.Builder
	unchanged := 0
	for _, path := range paths {
		root, _, _ := strings.Cut(path, "/s3/")
		step := strings.TrimPrefix(root, samples+"/")
		rec := loadRecord(t, path)
		saved := savedAgain(t, path, rec)
		source, parameters := sampleTemplate(t, step, rec)
		in := sampleInput(t, root, rec, source, parameters)
		result, diags := Compute(in)
		want, why := sampleDifferences(step)
		intr := rec.StackName == "Intr" && len(rec.Resources) > 0
		if diags.HasErrors() && !intr {
			t.Errorf("%s: %v", step, diags)
		}
		if intr {
			// cdkd leaves the default of a CommaDelimitedList as text, and the template splits it. CloudFormation makes it
			// a list, and refuses to split that.
			if len(diags) != 1 || diags[0].LogicalID != "After" {
				t.Errorf("%s: %v", step, diags)
			}
			if why == "" {
				why = "the template splits a list, which CloudFormation refuses: After is not compared"
			}
		}
		got := brief(result.Changes)
		if got != want {
			t.Errorf("%s %s:\n%s\nwant (%s):\n%s", step, rec.StackName, got, why, want)
		}
		verdict := "no changes"
		if got != "" {
			verdict = strings.ReplaceAll(got, "\n", "; ")
		} else {
			unchanged++
		}
		stack, _, _ := strings.Cut(rec.StackName, "~")
		if stack != rec.StackName {
			stack += "~"
		}
		fmt.Fprintf(&table, "%-58s %-8s %2d resources, %s, %s", step, stack, len(rec.Resources), saved, verdict)
		if why != "" {
			fmt.Fprintf(&table, " (%s)", why)
		}
		table.WriteByte('\n')
	}
	t.Logf("%d records, %d without changes\n%s", len(paths), unchanged, table.String())
}

// savedAgain saves a record and compares it with the file: every member is there, with its value.
func savedAgain(t *testing.T, path string, rec *state.Record) string {
	t.Helper()
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	after, err := rec.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(bytes.TrimSpace(before), bytes.TrimSpace(after)) {
		return "same bytes"
	}
	was, is := decode(t, string(before)), decode(t, string(after))
	if identical(was, is) {
		return "same content"
	}
	// The orphan command writes an empty list of dependencies, which no other one does: absent means the same
	// (reference §0, 8).
	resources, _ := was["resources"].(map[string]any)
	for _, r := range resources {
		if list, ok := r.(map[string]any)["dependencies"].([]any); ok && len(list) == 0 {
			delete(r.(map[string]any), "dependencies")
		}
	}
	if !identical(was, is) {
		t.Errorf("%s is not the same after it is saved again", path)
		return "lossy"
	}
	return "same but for empty dependencies"
}

// sampleTemplate finds what a record was made from: the template of its step, or of the step before that deployed it,
// or, where a deploy was killed, after it. A nested stack's template is named by its parent's, and the parent's record
// has its parameters.
func sampleTemplate(t *testing.T, step string, rec *state.Record) (source []byte, parameters map[string]string) {
	t.Helper()
	stack := rec.StackName
	if rec.ParentStack != "" {
		stack = rec.ParentStack
	}
	chapter, name, _ := strings.Cut(step, "/")
	files, err := filepath.Glob(filepath.Join(samples, chapter, "*", "assembly", stack+".template.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no template of %s", step, stack)
	}
	slices.Sort(files)
	found := files[0]
	for _, file := range files {
		if filepath.Base(filepath.Dir(filepath.Dir(file))) <= name {
			found = file
		}
	}
	if source, err = os.ReadFile(found); err != nil {
		t.Fatal(err)
	}
	if rec.ParentStack == "" {
		return source, nil
	}
	parent, err := template.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	asset, _ := parent.Resources[rec.ParentLogicalID].Metadata["aws:asset:path"].(string)
	if source, err = os.ReadFile(filepath.Join(filepath.Dir(found), asset)); err != nil {
		t.Fatal(err)
	}
	above := loadRecord(t, filepath.Join(samples, step, "s3", "cdkd", rec.ParentStack, rec.ParentRegion, "state.json"))
	given, _ := above.Resources[rec.ParentLogicalID].Properties["Parameters"].(map[string]any)
	parameters = map[string]string{}
	for name, v := range given {
		parameters[name], _ = text(v)
	}
	return source, parameters
}

func sampleInput(t *testing.T, root string, rec *state.Record, source []byte, parameters map[string]string) Input {
	t.Helper()
	var recorded []any
	for _, r := range rec.Resources {
		recorded = append(recorded, r.Properties)
	}
	pseudo := intrinsic.PseudoFor("000000000000", rec.Region, rec.StackName).WithRecordedStackID(recorded...)
	in, err := inputIn(pseudo, source, parameters)
	if err != nil {
		t.Fatalf("%s: %v", root, err)
	}
	if in.Scope.Parameters["FromSsm"] != nil {
		in.Scope.Parameters["FromSsm"] = "preval"
	}
	in.Scope.Imports = exported(t, root)
	for key := range in.Scope.StackOutputs {
		in.Scope.StackOutputs[key] = in.Scope.Imports[key[strings.LastIndex(key, "|")+1:]]
	}
	in.Record = rec
	return in
}

func loadRecord(t *testing.T, path string) *state.Record {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rec := &state.Record{}
	if err := json.Unmarshal(data, rec); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return rec
}

// exported collects the outputs of all stacks of a step.
func exported(t *testing.T, root string) map[string]any {
	t.Helper()
	all := map[string]any{}
	err := filepath.WalkDir(filepath.Join(root, "s3"), func(path string, _ os.DirEntry, err error) error {
		if err == nil && filepath.Base(path) == "state.json" {
			for name, v := range loadRecord(t, path).Outputs {
				all[name] = v
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
