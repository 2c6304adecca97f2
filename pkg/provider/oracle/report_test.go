package oracle

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/provider/services"
)

var update = flag.Bool("update", os.Getenv("SLIPWAY_TEST_UPDATE") != "", "write the document and what has been measured")

const docs = "../../../docs/provider-oracle.md"

// TestReport keeps docs/provider-oracle.md in step with what has been measured.
func TestReport(t *testing.T) {
	trials, err := Trials()
	if err != nil {
		t.Fatal(err)
	}
	explanations, err := Explanations()
	if err != nil {
		t.Fatal(err)
	}
	want, err := report("results", trials, explanations)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(docs, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have, err := os.ReadFile(docs); err != nil || string(have) != want {
		t.Errorf("docs/provider-oracle.md is not what has been measured (%v): run go test ./pkg/provider/oracle -update", err)
	}
}

// TestTrialsAreMadeOfDirectTypesAndChange: a trial that changes nothing would compare the same thing twice.
func TestTrialsAreMadeOfDirectTypesAndChange(t *testing.T) {
	trials, err := Trials()
	if err != nil {
		t.Fatal(err)
	}
	if len(trials) < 20 {
		t.Errorf("there are %d trials", len(trials))
	}
	var direct []string
	for _, c := range services.Coverage() {
		direct = append(direct, c.Type)
	}
	tried := slices.Clone(elsewhere)
	for _, trial := range trials {
		tried = append(tried, trial.Types()...)
		for _, typeName := range trial.Types() {
			if !slices.Contains(direct, typeName) {
				t.Errorf("%s: %s has no direct provider", trial.Name, typeName)
			}
		}
		if text(trial.Template) == text(trial.Changed()) || trial.About == "" {
			t.Errorf("%s: the change changes nothing, or nothing says what it is about", trial.Name)
		}
	}
	for _, typeName := range direct {
		if !slices.Contains(tried, typeName) {
			t.Errorf("%s is in no trial", typeName)
		}
	}
}

func TestEveryExplanationNamesAPageThatDecides(t *testing.T) {
	explanations, err := Explanations()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range explanations {
		if !strings.HasPrefix(e.Page, "https://docs.aws.amazon.com/") || e.Because == "" || !slices.Contains([]string{"ours", "theirs", "both"}, e.Right) {
			t.Errorf("%s of %s: %+v", e.What, e.Type, e)
		}
	}
}

// TestOurDeletionsLeaveNothing reads the record of the last run.
func TestOurDeletionsLeaveNothing(t *testing.T) {
	trials, err := Trials()
	if err != nil {
		t.Fatal(err)
	}
	for _, trial := range trials {
		m, err := readMeasured("results", trial.Name)
		if err != nil {
			t.Fatal(err)
		}
		if !m.Deleted || m.Create == 0 || m.Update == 0 || !slices.Equal(m.Types, trial.Types()) {
			t.Errorf("%s: on record is %+v", trial.Name, m)
		}
	}
}
