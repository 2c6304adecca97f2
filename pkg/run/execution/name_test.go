package execution

import (
	"regexp"
	"strings"
	"testing"

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
		id := rapid.StringMatching(`[0-9]{8}T[0-9]{9}Z-[0-9a-f]{8}`).Draw(t, "run")
		x, y := Name(a, runlog.CommandDestroy, id), Name(b, runlog.CommandDestroy, id)
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
		name := Name(subject, runlog.CommandDeploy, id)
		if fits := n+len(tail) <= 80; fits && name != subject+tail || !fits && (len(name) != 80 || !legalName.MatchString(name)) {
			t.Errorf("a subject of %d characters becomes %q, %d characters", n, name, len(name))
		}
	}
}
