package dynamo_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/runlog/dynamo"
)

// Who may follow runs may read RunPartitions: what is written there holds no record of a resource.
func TestOperationsAreInPartitionsThatFollowersCannotRead(t *testing.T) {
	s, w, _ := over(t, answer{body: `{}`}, answer{body: `{}`}, answer{body: `{"Items":[]}`}, answer{body: `{"Item":{"pk":{"S":"run#r"},"status":{"S":"CLOSED"}}}`},
		answer{body: `{"Items":[]}`}, answer{body: `{"Items":[]}`})
	op := runlog.Op{OpID: "A", Epoch: 1, Before: json.RawMessage(`{"properties":{"Name":"told-to-nobody"}}`)}
	if _, err := s.PutOp(t.Context(), "r", runlog.StatusOpen, op); err != nil {
		t.Fatal(err)
	}
	_, _ = s.Op(t.Context(), "r", "A")
	if _, err := s.Ops(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	if done, err := s.Expire(t.Context(), "r", time.Unix(1e9, 0)); err != nil || !done {
		t.Fatal(done, err)
	}
	key := func(i int, path ...string) string {
		v := any(w.asked[i])
		for _, p := range path {
			if list, ok := v.([]any); ok {
				v = list[int(p[0]-'0')]
				continue
			}
			v = v.(map[string]any)[p]
		}
		return v.(string)
	}
	if put := key(0, "TransactItems", "1", "Put", "Item", "pk", "S"); put != "ops#r" || strings.HasPrefix(put, dynamo.RunPartitions) {
		t.Errorf("the operation is written to %s", put)
	}
	if check := key(0, "TransactItems", "0", "ConditionCheck", "Key", "pk", "S"); check != "run#r" {
		t.Errorf("the header is looked for in %s", check)
	}
	for i, want := range map[int]string{2: "ops#r", 4: "run#r", 5: "ops#r"} {
		if got := key(i, "ExpressionAttributeValues", ":pk", "S"); got != want {
			t.Errorf("query %d is of %s, want %s", i, got, want)
		}
	}
	if got := key(1, "Key", "pk", "S"); got != "ops#r" {
		t.Errorf("the operation is read from %s", got)
	}
}
