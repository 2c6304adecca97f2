package views

import (
	"testing"

	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/plan"
)

// nestedPlan has a nested stack of every kind.
func nestedPlan() []plan.StackView {
	view := func(stack string, nested *plan.NestedView, changes ...diff.Change) plan.StackView {
		return plan.StackView{Stack: stack, Region: "eu-west-1", Account: "111111111111", Changes: changes, Nested: nested}
	}
	topic := func(id string, action diff.Action) diff.Change {
		return diff.Change{LogicalID: id, Type: "AWS::SNS::Topic", Action: action}
	}
	same := view("Shop~Api", &plan.NestedView{Parent: "Shop", LogicalID: "Api"})
	same.Unchanged = 3
	return []plan.StackView{
		view("Shop", nil, topic("Orders", diff.ActionCreate)),
		same,
		view("Shop~Api~Cache", &plan.NestedView{Parent: "Shop~Api", LogicalID: "Cache"}, topic("Alarms", diff.ActionUpdate)),
		view("Shop~Late", &plan.NestedView{Parent: "Shop", LogicalID: "Late", Undecided: "the condition Big needs the parameter Size, which is known after the deploy of its parent"}),
		view("Shop~Old", &plan.NestedView{Parent: "Shop", LogicalID: "Old", Gone: true}, topic("News", diff.ActionDelete)),
	}
}

func TestNestedStacksAreHeadedByTheWayToThem(t *testing.T) {
	s, out, _ := buffers()
	s.Plan(s.Out, nestedPlan(), Detail)
	golden(t, "nested.golden", out.String())
}

func TestNestedStacksCount(t *testing.T) {
	list := nestedPlan()
	want := PlanCounts{Create: 1, Update: 1, Delete: 1, Unchanged: 3, Undecided: 1}
	if c := CountPlan(list); c != want {
		t.Errorf("counted %+v, want %+v", c, want)
	}
	// One that can't be compared is said to be, and is no difference.
	c := CountPlan(list[3:4])
	if got := c.String(); c.Any() || got != "no changes, 1 nested stack not compared, 0 unchanged" {
		t.Errorf("%+v: %q", c, got)
	}
}
