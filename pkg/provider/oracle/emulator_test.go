//go:build emulators

package oracle

import (
	"archive/zip"
	"bytes"
	"errors"
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/slipway-cdk/slipway/pkg/provider/services"
)

// TestBothWays deploys, changes and deletes every template both ways and compares what is there after each step. Only
// MiniStack has a CloudFormation that makes real resources of its other services.
func TestBothWays(t *testing.T) {
	if emulator := os.Getenv("SLIPWAY_TEST_EMULATOR"); emulator != "ministack" {
		t.Logf("%s is no oracle: its CloudFormation is not tried", emulator)
		return
	}
	trials, err := Trials()
	if err != nil {
		t.Fatal(err)
	}
	explanations, err := Explanations()
	if err != nil {
		t.Fatal(err)
	}
	direct := map[string]bool{}
	for _, c := range services.Coverage() {
		direct[c.Type] = true
	}
	used := make([]bool, len(explanations))
	for _, trial := range trials {
		t.Run(trial.Name, func(t *testing.T) {
			for _, typeName := range trial.Types() {
				if !direct[typeName] {
					t.Fatalf("%s has no direct provider", typeName)
				}
			}
			m := measure(t, trial)
			for _, d := range m.Differences {
				i := slices.IndexFunc(explanations, func(e Explanation) bool { return e.explains(trial.Name, d) })
				if i < 0 {
					t.Errorf("%s, %s of %s (%s): ours is %s, CloudFormation's %s, and nothing explains it", d.Stage, d.What, d.LogicalID, d.Type, d.Ours, d.Theirs)
					continue
				}
				used[i] = true
			}
			known, err := readMeasured("results", trial.Name)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%-24s %2d resources, %3d values after the create, %3d after the update, %2d differences", trial.Name, m.Resources, m.Create, m.Update, len(m.Differences))
			switch {
			case *update:
				if err := m.write("results", trial.Name); err != nil {
					t.Fatal(err)
				}
			case !reflect.DeepEqual(m, known):
				t.Errorf("measured %+v, on record is %+v: run with SLIPWAY_TEST_UPDATE=1", m, known)
			}
		})
	}
	if !t.Failed() && !filtered() {
		for i, e := range explanations {
			if !used[i] {
				t.Errorf("%s of %s does not differ: take the explanation out", e.What, e.Type)
			}
		}
	}
}

// TestTypesThatCloudFormationDoesNotHave: what it has learned is to be put into a trial.
func TestTypesThatCloudFormationDoesNotHave(t *testing.T) {
	if os.Getenv("SLIPWAY_TEST_EMULATOR") != "ministack" {
		t.Log("only MiniStack's CloudFormation is compared with")
		return
	}
	for _, typeName := range elsewhere {
		f := newFormation(t, "without-"+strings.ToLower(typeName[strings.LastIndex(typeName, ":")+1:]))
		err := f.deploy(t, stageCreate, map[string]any{"Resources": map[string]any{"One": map[string]any{"Type": typeName}}})
		if err == nil || !strings.Contains(err.Error(), "Unrecognized resource types") {
			t.Errorf("%s: %v", typeName, err)
		}
	}
}

// archive makes a bucket with code.zip.
func archive(t *testing.T, bucket string) {
	t.Helper()
	var code bytes.Buffer
	z := zip.NewWriter(&code)
	w, err := z.Create("python/one.py")
	if err == nil {
		_, err = w.Write([]byte("ONE = 1\n"))
	}
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	client := s3.NewFromConfig(clients(t), func(o *s3.Options) { o.UsePathStyle = true })
	_, err = client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &bucket})
	if err == nil {
		_, err = client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: aws.String("code.zip"), Body: bytes.NewReader(code.Bytes())})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// filtered reports whether only some trials run.
func filtered() bool {
	f := flag.Lookup("test.run")
	return f != nil && f.Value.String() != "" && f.Value.String() != "TestBothWays"
}

// measure makes the trial both ways.
func measure(t *testing.T, trial Trial) Measured {
	t.Helper()
	stages := []string{stageCreate, stageUpdate}
	templates := map[string]map[string]any{stageCreate: trial.Template, stageUpdate: trial.Changed()}
	ours, theirs := newEngine(t), newFormation(t, trial.Name)
	if trial.Archive != "" {
		archive(t, trial.Archive)
	}
	stacks, records := map[string]Stack{}, map[string]recorded{}
	for _, stage := range stages {
		var err error
		if records[stage], err = ours.deploy(t, trial.Name, templates[stage]); err != nil {
			t.Fatalf("our %s: %v", stage, err)
		}
		if stacks[stage], err = ours.look(t, records[stage]); err != nil {
			t.Fatalf("reading what our %s has left: %v", stage, err)
		}
	}
	if err := errors.Join(ours.destroy(t, trial.Name), ours.expectNone(t, stacks[stageUpdate], records[stageUpdate])); err != nil {
		t.Fatalf("our deletion: %v", err)
	}
	m := Measured{Types: trial.Types(), Deleted: true}
	m.Resources = len(stacks[stageUpdate].Resources)
	var last Stack
	for _, stage := range stages {
		if err := theirs.deploy(t, stage, templates[stage]); err != nil {
			t.Fatalf("CloudFormation's %s: %v", stage, err)
		}
		their, err := theirs.look(t, ours, records[stage], stacks[stage])
		if err != nil {
			t.Fatalf("reading what CloudFormation's %s has left: %v", stage, err)
		}
		values, differ := Compare(stage, stacks[stage], their)
		if m.Differences = append(m.Differences, differ...); stage == stageCreate {
			m.Create = values
		} else {
			m.Update = values
		}
		last = their
	}
	if err := theirs.delete(t); err != nil {
		t.Fatalf("CloudFormation's deletion: %v", err)
	}
	m.Left = ours.left(t, last, stacks[stageUpdate], records[stageUpdate])
	return m
}
