package shipped

import "testing"

func TestBothMachinesAreLoadedUnderTheirNames(t *testing.T) {
	const run, settle = "arn:aws:states:eu-west-1:111122223333:stateMachine:run", "arn:aws:states:eu-west-1:111122223333:stateMachine:settle"
	machines, err := Machines(Names{Planner: "planner", Provisioner: "provisioner", Publisher: "publisher", Janitor: "janitor", Run: run, Settle: settle})
	if err != nil || len(machines) != 2 || machines[run] == nil || machines[settle] == nil || machines[run] == machines[settle] {
		t.Errorf("%v, %v", machines, err)
	}
}
