//go:build emulators

package endtoend

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	install "github.com/slipway-cdk/slipway/pkg/bootstrap"
	"github.com/slipway-cdk/slipway/pkg/iampolicy"
	"github.com/slipway-cdk/slipway/pkg/iampolicy/calls"
)

// callsVariable is the directory that takes what the functions have called (calls.jsonl) and what they are allowed and
// have not called (unused).
const callsVariable = "SLIPWAY_TEST_CALLS"

// made are the calls of the functions that this process has installed, by their JSON, and the policies of their roles, by
// the function's part of the name.
var made struct {
	mu       sync.Mutex
	calls    map[string]calls.Recorded
	policies map[string][]iampolicy.Document
}

func TestMain(m *testing.M) {
	code := m.Run()
	if dir := os.Getenv(callsVariable); dir != "" && len(made.calls) > 0 {
		if err := report(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// policies reads the policies of the functions' roles as they were installed.
func (w *world) policies() map[string][]iampolicy.Document {
	w.Helper()
	rec := w.record(install.StackName(w.prefix))
	if rec == nil {
		w.Fatal("the control plane has no record")
	}
	roles := map[string][]iampolicy.Document{}
	for _, r := range rec.Resources {
		if r.ResourceType != "AWS::IAM::Role" {
			continue
		}
		list, _ := r.Properties["Policies"].([]any)
		for _, p := range list {
			one, _ := p.(map[string]any)
			text, err := json.Marshal(one["PolicyDocument"])
			if err != nil {
				w.Fatal(err)
			}
			d, err := iampolicy.Parse(text)
			if err != nil {
				w.Fatal(err)
			}
			roles[r.PhysicalID] = append(roles[r.PhysicalID], d)
		}
	}
	out := map[string][]iampolicy.Document{}
	for _, r := range rec.Resources {
		if part, own := strings.CutPrefix(r.PhysicalID, w.prefix+"-"); own && r.ResourceType == "AWS::Lambda::Function" {
			role, _ := r.Properties["Role"].(string)
			out[part] = roles[role[strings.LastIndexByte(role, '/')+1:]]
			if len(out[part]) == 0 {
				w.Fatalf("function %s has the role %q, which has no policies", r.PhysicalID, role)
			}
		}
	}
	return out
}

// requested is a call with what IAM knows of every request.
func requested(c iampolicy.Call) iampolicy.Call {
	out := iampolicy.Call{Action: c.Action, Resource: c.Resource, Context: map[string][]string{"aws:SecureTransport": {"true"}}}
	maps.Copy(out.Context, c.Context)
	return out
}

// versioned is a call as it is on AWS. The emulators' notices of new objects name no version, so an archive in an inbox is
// read without one; on AWS, where the bucket keeps versions, every notice names one, and reading it is another action.
func versioned(c iampolicy.Call) iampolicy.Call {
	if c.Action == "s3:GetObject" && strings.Contains(c.Resource, "/inbox/") {
		c.Action = "s3:GetObjectVersion"
	}
	return c
}

// heldAgainstPolicies fails for every call in the book that a function's own role does not allow. The emulator allows all.
func (w *world) heldAgainstPolicies() {
	w.Helper()
	made.mu.Lock()
	defer made.mu.Unlock()
	refused := map[string]bool{}
	for _, c := range w.book().Calls {
		part, own := strings.CutPrefix(c.Function, w.prefix+"-")
		documents := made.policies[part]
		switch {
		case !own || c.Assumed:
			continue
		case documents == nil:
			refused[part+" is not of the template"] = true
			continue
		case c.Unread != "":
			refused[fmt.Sprintf("%s calls %s of %s under its own role: %s", part, c.Operation, c.Service, c.Unread)] = true
		}
		for _, need := range c.Needs {
			need = versioned(need)
			d, err := iampolicy.Evaluate(requested(need), documents...)
			if err != nil {
				w.Fatal(err)
			}
			if !d.Allowed {
				refused[fmt.Sprintf("%s may not %s on %s %v, and does", part, need.Action, need.Resource, need.Context)] = true
			}
			recorded := calls.Recorded{Principal: part, Call: calls.General(need)}
			text, err := json.Marshal(recorded)
			if err != nil {
				w.Fatal(err)
			}
			made.calls[string(text)] = recorded
		}
	}
	for _, text := range slices.Sorted(maps.Keys(refused)) {
		w.Error(text)
	}
}

// called reports whether a function has made a call under its own role.
func called(part string) bool {
	made.mu.Lock()
	defer made.mu.Unlock()
	for _, c := range made.calls {
		if c.Principal == part {
			return true
		}
	}
	return false
}

// report writes what was called, and what is allowed and was not called.
func report(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var list []calls.Recorded
	for _, text := range slices.Sorted(maps.Keys(made.calls)) {
		list = append(list, made.calls[text])
	}
	f, err := os.Create(filepath.Join(dir, "calls.jsonl"))
	if err == nil {
		err = calls.Write(f, list)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return err
	}
	var unused strings.Builder
	for _, part := range slices.Sorted(maps.Keys(made.policies)) {
		for _, action := range unusedActions(made.policies[part], part, list) {
			fmt.Fprintf(&unused, "%s\t%s\n", part, action)
		}
	}
	return os.WriteFile(filepath.Join(dir, "unused"), []byte(unused.String()), 0o644)
}

// unusedActions are the actions that policies allow on any resource and that were not called on any.
func unusedActions(documents []iampolicy.Document, part string, list []calls.Recorded) []string {
	unused := map[string]bool{}
	for _, d := range documents {
		for _, s := range d.Statement {
			for _, action := range s.Action {
				used := slices.ContainsFunc(list, func(c calls.Recorded) bool {
					return c.Principal == part && iampolicy.Matches(strings.ToLower(action), strings.ToLower(c.Action))
				})
				if s.Effect == "Allow" && !used {
					unused[action] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(unused))
}
