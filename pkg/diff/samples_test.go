package diff

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/state"
)

const samples = "../../../shared/reference/cdkd-samples"

// sampleDifferences are the records of the samples that differ from the template beside them, with the reason.
// Every other record has to be up to date.
func sampleDifferences(step string) (want, why string) {
	switch step {
	case "01-basic/04-diff-to-v3", "01-basic/05-replace-refused", "01-basic/06-replace-reversed-by-rollback":
		return "update TopicBFC7AF6E DisplayName\nreplace Param165332EC Name!always\ncreate Extra6C4EAC05", "the template was not deployed"
	case "04-secrets/01-deploy", "04-secrets/02-nochange":
		return "update Embedded Value\nupdate Q DisplayName", "cdkd records what a plain SSM reference resolves to, not the reference"
	case "06-failures/02-update-fails-auto-rollback":
		return "update A VisibilityTimeout\nupdate T DisplayName\ncreate B\ncreate C\ncreate Bad\ncreate Never\ndelete Old", "the deploy was rolled back"
	case "06-failures/03-update-fails-no-rollback", "06-failures/06-no-rollback-again":
		return "create Bad\ncreate Never\ndelete Old", "the deploy failed half way"
	case "06-failures/10-first-deploy-no-rollback":
		return "create Bad\ncreate Never", "the deploy failed half way"
	case "06-failures/12-first-auto-rollback-partially-fails":
		return "create A\ncreate T\ncreate C\ncreate Bad\ncreate Never", "the deploy was rolled back"
	case "06-failures/00-initial-deploy-fails-auto-rollback-intr", "06-failures/20-commadelimitedlist-default-not-coerced":
		return "create Main\ncreate DevOnly\ncreate Joined\ncreate After\ncreate Meta", "the deploy was rolled back"
	}
	return "", ""
}

// TestSamples compares what cdkd has recorded with the templates that it deployed.
func TestSamples(t *testing.T) {
	if _, err := os.Stat(samples); err != nil {
		t.Skip("the samples are not beside the repository")
	}
	compared := 0
	err := filepath.WalkDir(samples, func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "state.json" {
			return err
		}
		rec := loadRecord(t, path)
		if rec == nil {
			return nil // deliberately damaged
		}
		root, _, _ := strings.Cut(path, "/s3/")
		source, err := os.ReadFile(filepath.Join(root, "assembly", rec.StackName+".template.json"))
		if err != nil {
			return nil // a step without an assembly, or a nested stack
		}
		step := strings.TrimPrefix(root, samples+"/")
		var recorded []any
		for _, r := range rec.Resources {
			recorded = append(recorded, r.Properties)
		}
		pseudo := intrinsic.PseudoFor("000000000000", rec.Region, rec.StackName).WithRecordedStackID(recorded...)
		in, err := inputIn(pseudo, source, nil)
		if err != nil {
			t.Errorf("%s: %v", step, err)
			return nil
		}
		if in.Scope.Parameters["FromSsm"] != nil {
			in.Scope.Parameters["FromSsm"] = "preval"
		}
		in.Scope.Imports = exported(t, root)
		for key := range in.Scope.StackOutputs {
			in.Scope.StackOutputs[key] = in.Scope.Imports[key[strings.LastIndex(key, "|")+1:]]
		}
		in.Record = rec
		result, diags := Compute(in)
		want, why := sampleDifferences(step)
		switch {
		case strings.HasPrefix(step, "05-intrinsics/"):
			// cdkd leaves the default of a CommaDelimitedList as text, and the template splits it. CloudFormation
			// makes it a list, and refuses to split that.
			if len(diags) != 1 || diags[0].LogicalID != "After" {
				t.Errorf("%s: %v", step, diags)
			}
		case strings.HasSuffix(step, "intr"), strings.HasSuffix(step, "not-coerced"):
		default:
			if diags.HasErrors() {
				t.Errorf("%s: %v", step, diags)
			}
		}
		if got := brief(result.Changes); got != want {
			t.Errorf("%s %s:\n%s\nwant (%s):\n%s", step, rec.StackName, got, why, want)
		}
		compared++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if compared < 30 {
		t.Errorf("only %d records are compared", compared)
	}
	t.Logf("%d records compared", compared)
}

func loadRecord(t *testing.T, path string) *state.Record {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rec := &state.Record{}
	if err := json.Unmarshal(data, rec); err != nil {
		return nil
	}
	return rec
}

// exported collects the outputs of all stacks of a step.
func exported(t *testing.T, root string) map[string]any {
	t.Helper()
	all := map[string]any{}
	err := filepath.WalkDir(filepath.Join(root, "s3"), func(path string, _ os.DirEntry, err error) error {
		if err == nil && filepath.Base(path) == "state.json" {
			if rec := loadRecord(t, path); rec != nil {
				for name, v := range rec.Outputs {
					all[name] = v
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
