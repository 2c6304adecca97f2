package run

import (
	"regexp"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// legalName is what Step Functions takes as the name of an execution and is safe everywhere
// (https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html).
var legalName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

func TestASuccessorHasANameOfItsOwn(t *testing.T) {
	h := runlog.Header{RunID: "20261129T213124236Z-9d519276", Command: runlog.CommandDeploy, Stack: runlog.StackRef{Name: strings.Repeat("Stack~", 30)}}
	seen := map[string]bool{executionOf(h): true}
	for n := range 50 {
		name := successorOf(h, n)
		if seen[name] || !legalName.MatchString(name) {
			t.Fatalf("successor %d is %q", n, name)
		}
		seen[name] = true
	}
	h.Kind = runlog.KindDeployment
	if name := executionOf(h); !strings.HasPrefix(name, "deployment-deploy-") {
		t.Errorf("a deployment is %q", name)
	}
}

func TestARunIsCarriedByItsSuccessorsAndByNobodyElse(t *testing.T) {
	for _, name := range []string{"App", strings.Repeat("Stack~", 30)} {
		h := runlog.Header{RunID: "20261129T213124236Z-9d519276", Command: runlog.CommandDeploy, Kind: runlog.KindStack, Decision: 12, Stack: runlog.StackRef{Name: name}}
		for _, n := range []int{1, 2, 12, 13} {
			if !carries(h, successorOf(h, n)) {
				t.Errorf("%s: successor %d is not known", name, n)
			}
		}
		tail := "-deploy-" + h.RunID
		for _, stranger := range []string{
			"Other" + tail, "Other-3" + tail, name + "-three" + tail, tail, "3" + tail, executionOf(h) + "-more", successorOf(h, 3)[1:],
			strings.Replace(successorOf(h, 3), "-deploy-", "-destroy-", 1),
		} {
			if carries(h, stranger) {
				t.Errorf("%s: %s is taken for one of its executions", name, stranger)
			}
		}
		// Of a name that was shortened nobody can read the decision, and none lies beyond the next.
		if long := len(name) > 80; carries(h, successorOf(h, 14)) == long {
			t.Errorf("%s: successor 14 is known: %t", name, !long)
		}
	}
}

func TestTokensAreThoseThatCloudControlTakes(t *testing.T) {
	legal := regexp.MustCompile(`^[-A-Za-z0-9+/=]{1,128}$`)
	a, b := token("run", "A", "create", 1), token("run", "A", "create", 2)
	if a == b || a != token("run", "A", "create", 1) {
		t.Errorf("attempts 1 and 2 have the tokens %s and %s", a, b)
	}
	for _, suffix := range []string{"", "-old", "-remnant"} {
		if !legal.MatchString(a + suffix) {
			t.Errorf("%q is no token", a+suffix)
		}
	}
	if token("run", "A", "b", 1) == token("run", "Ab", "", 1) {
		t.Error("the parts of a token run into each other")
	}
}
