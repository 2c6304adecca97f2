package controlplane

import (
	"strings"
	"testing"
	"time"
)

const machineARN = "arn:aws:states:eu-west-1:111111111111:stateMachine:slipway-run"

func variables(more map[string]string) func(string) string {
	all := map[string]string{StateBucketVariable: "state", TableNameVariable: "slipway", RunStateMachineVariable: machineARN}
	for k, v := range more {
		all[k] = v
	}
	return func(name string) string { return all[name] }
}

func environment(t *testing.T, more map[string]string) Environment {
	t.Helper()
	env, err := ReadEnvironment(variables(more))
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func TestTheEnvironmentNamesThePlane(t *testing.T) {
	env := environment(t, nil)
	if env.Account() != "111111111111" || env.StateBucket != "state" || env.TableName != "slipway" {
		t.Errorf("the environment is %+v", env)
	}
	if env.JournalRetention != 90*24*time.Hour {
		t.Errorf("journals are kept for %v", env.JournalRetention)
	}
	if kept := environment(t, map[string]string{JournalDaysVariable: "0"}).JournalRetention; kept != 0 {
		t.Errorf("with 0 days journals are kept for %v", kept)
	}
}

func TestEverythingThatIsWrongWithTheEnvironmentIsSaidAtOnce(t *testing.T) {
	_, err := ReadEnvironment(variables(map[string]string{StateBucketVariable: "", RunStateMachineVariable: "arn:aws:sqs:eu-west-1:1:q", JournalDaysVariable: "-1"}))
	if err == nil {
		t.Fatal("there is no error")
	}
	for _, name := range []string{StateBucketVariable, RunStateMachineVariable, JournalDaysVariable} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not in the error: %v", name, err)
		}
	}
	if strings.Contains(err.Error(), TableNameVariable) {
		t.Errorf("%s is not wrong: %v", TableNameVariable, err)
	}
}

func TestExecutionsBelongToTheStateMachineWhateverItsAlias(t *testing.T) {
	want := "arn:aws:states:eu-west-1:111111111111:execution:slipway-run:App-deploy-1"
	for _, machine := range []string{machineARN, machineARN + ":live", machineARN + ":3"} {
		env := environment(t, map[string]string{RunStateMachineVariable: machine})
		if got := env.executionARN("App-deploy-1"); got != want {
			t.Errorf("for %s: %s", machine, got)
		}
	}
	china := environment(t, map[string]string{RunStateMachineVariable: "arn:aws-cn:states:cn-north-1:111111111111:stateMachine:s"})
	if got := china.executionARN("e"); got != "arn:aws-cn:states:cn-north-1:111111111111:execution:s:e" {
		t.Errorf("in another partition: %s", got)
	}
}

func TestHoldersAreToldApart(t *testing.T) {
	env := environment(t, map[string]string{"AWS_LAMBDA_FUNCTION_NAME": "f", "AWS_LAMBDA_LOG_STREAM_NAME": "2026/11/29/[$LATEST]ab"})
	if got := holder(env); got != "f/2026/11/29/[$LATEST]ab" {
		t.Errorf("the holder is %s", got)
	}
	outside := environment(t, nil)
	if a, b := holder(outside), holder(outside); a == b {
		t.Errorf("two processes are both %s", a)
	}
}
