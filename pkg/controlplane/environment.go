package controlplane

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/arn"
)

// The variables of a function's environment.
const (
	// StateBucketVariable names the bucket that holds the stacks' records.
	StateBucketVariable = "STATE_BUCKET"
	// StateBucketRegionVariable is its region; without it, the function's own.
	StateBucketRegionVariable = "STATE_BUCKET_REGION"
	// TableNameVariable names the table of the run log.
	TableNameVariable = "TABLE_NAME"
	// RunStateMachineVariable is the ARN of the state machine that carries runs. Its account is the control
	// plane's own.
	RunStateMachineVariable = "RUN_STATE_MACHINE_ARN"
	// JournalDaysVariable is for how many days after its end a run's events and operation journal are kept;
	// 90 without it, 0 for ever.
	JournalDaysVariable = "JOURNAL_DAYS"
	// VaultKeyVariable names the KMS key of the run vault. Without it a stack with NoEcho values is refused.
	VaultKeyVariable = "VAULT_KEY_ID"
	// UploadsBucketVariable names the bucket of uploads and inboxes.
	UploadsBucketVariable = "UPLOADS_BUCKET"
	// PlaneNameVariable is the control plane's name: a dimension of its metrics.
	PlaneNameVariable = "PLANE_NAME"
)

const journalDays = 90

// Environment is what a function is told of the control plane that it belongs to.
type Environment struct {
	StateBucket       string
	StateBucketRegion string // "" is the function's own
	TableName         string
	VaultKey          string // "" is no vault
	UploadsBucket     string // "" is none: nothing is admitted
	RunStateMachine   arn.ARN
	// JournalRetention is how long a closed run's events and operation journal are kept; 0 is for ever.
	JournalRetention time.Duration
	// FunctionName and LogStream are set by Lambda. The log stream has the name of nobody else's.
	FunctionName string
	LogStream    string
}

// ReadEnvironment reads the variables of a function; get is os.Getenv. All that is wrong is in the error.
func ReadEnvironment(get func(string) string) (Environment, error) {
	e := Environment{
		StateBucket: get(StateBucketVariable), StateBucketRegion: get(StateBucketRegionVariable), TableName: get(TableNameVariable),
		VaultKey: get(VaultKeyVariable), UploadsBucket: get(UploadsBucketVariable),
		JournalRetention: journalDays * 24 * time.Hour,
		FunctionName:     get("AWS_LAMBDA_FUNCTION_NAME"), LogStream: get("AWS_LAMBDA_LOG_STREAM_NAME"),
	}
	var errs []error
	for _, v := range []string{StateBucketVariable, TableNameVariable, RunStateMachineVariable} {
		if get(v) == "" {
			errs = append(errs, fmt.Errorf("the environment variable %s is not set", v))
		}
	}
	if v := get(RunStateMachineVariable); v != "" {
		machine, err := arn.Parse(v)
		if err != nil || machine.Service != "states" || machine.AccountID == "" || !strings.HasPrefix(machine.Resource, "stateMachine:") {
			errs = append(errs, fmt.Errorf("the environment variable %s is not the ARN of a state machine", RunStateMachineVariable))
		}
		e.RunStateMachine = machine
	}
	if v := get(JournalDaysVariable); v != "" {
		days, err := strconv.Atoi(v)
		if err != nil || days < 0 || days > 36500 {
			errs = append(errs, fmt.Errorf("the environment variable %s is not a number of days", JournalDaysVariable))
		}
		e.JournalRetention = time.Duration(days) * 24 * time.Hour
	}
	if err := errors.Join(errs...); err != nil {
		return Environment{}, err
	}
	return e, nil
}

// Account is the control plane's own.
func (e Environment) Account() string { return e.RunStateMachine.AccountID }

// executionARN is the ARN of an execution of the run state machine, whichever version or alias of it is named.
func (e Environment) executionARN(name string) string {
	machine, _, _ := strings.Cut(strings.TrimPrefix(e.RunStateMachine.Resource, "stateMachine:"), ":")
	a := e.RunStateMachine
	a.Resource = "execution:" + machine + ":" + name
	return a.String()
}
