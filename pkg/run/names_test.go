package run

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// legalName is what Step Functions takes as the name of an execution and is safe everywhere
// (https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html).
var legalName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

func TestExecutionNamesAreLegalAndTellRunsApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.String().Draw(t, "a")
		b := rapid.String().Draw(t, "b")
		id := NewRunID(time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "time"), 0))
		x, y := ExecutionName(a, runlog.CommandDestroy, id), ExecutionName(b, runlog.CommandDestroy, id)
		for _, name := range []string{x, y} {
			if !legalName.MatchString(name) || !strings.HasSuffix(name, "-destroy-"+id) {
				t.Fatalf("%q becomes %q", a, name)
			}
		}
		if a != b && x == y {
			t.Fatalf("%q and %q are both %q", a, b, x)
		}
	})
}

func TestASubjectIsOnlyShortenedWhereItDoesNotFit(t *testing.T) {
	const id = "20261129T213124236Z-9d519276"
	tail := "-deploy-" + id
	for _, n := range []int{1, 80 - len(tail) - 1, 80 - len(tail), 80 - len(tail) + 1, 300} {
		subject := strings.Repeat("s", n)
		name := ExecutionName(subject, runlog.CommandDeploy, id)
		if fits := n+len(tail) <= 80; fits && name != subject+tail || !fits && (len(name) != 80 || !legalName.MatchString(name)) {
			t.Errorf("a subject of %d characters becomes %q, %d characters", n, name, len(name))
		}
	}
}

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
