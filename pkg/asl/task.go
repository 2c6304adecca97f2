package asl

import (
	"context"
	"errors"
)

// errTimedOut is the end of a call that has run into its task's timeout.
var errTimedOut = errors.New("task timed out")

// task runs a Task state once.
func (v *visit) task() (doc, error) {
	arguments, err := v.effective()
	if err != nil {
		return doc{}, err
	}
	parameters, err := v.limited(arguments, v.state.name)
	if err != nil {
		return doc{}, err
	}
	of := TaskDetails{ResourceType: v.state.resource.service, Resource: v.state.resource.action}
	if err := v.add(Event{Type: TaskScheduled, TaskScheduled: &TaskScheduledDetails{
		TaskDetails: of, Region: v.run.arn.region, Parameters: parameters.text, TimeoutInSeconds: int64(v.state.timeout.Seconds()),
	}}); err != nil {
		return doc{}, err
	}
	if err := v.add(Event{Type: TaskStarted, TaskStarted: &of}); err != nil {
		return doc{}, err
	}
	// The resource's fields are checked when the definition is loaded, so the arguments are an object.
	result, err := v.call(of, arguments.(map[string]any))
	var out doc
	if err == nil {
		out, err = v.limited(result, of.ResourceType)
	}
	if err != nil {
		return doc{}, v.taskFailed(of, err)
	}
	if err := v.add(Event{Type: TaskSucceeded, TaskSucceeded: &TaskOutputDetails{TaskDetails: of, Output: out.text}}); err != nil {
		return doc{}, err
	}
	return v.result(result)
}

func (v *visit) call(of TaskDetails, arguments map[string]any) (any, error) {
	switch of.Resource {
	case "invoke":
		return v.invoke(arguments)
	case "startExecution":
		x, err := v.startExecution(arguments)
		if err != nil {
			return nil, err
		}
		return started(x), nil
	}
	return v.startExecutionSync(of, arguments)
}

// taskFailed records the failure of a call and returns it. What is not a failure of the task but the end of the
// visit is passed on.
func (v *visit) taskFailed(of TaskDetails, err error) error {
	if errors.Is(err, errTimedOut) {
		if err := v.add(Event{Type: TaskTimedOut, TaskTimedOut: &TaskErrorDetails{TaskDetails: of, Error: errTimeout}}); err != nil {
			return err
		}
		return &failure{name: errTimeout, at: v.last}
	}
	var f *failure
	if !errors.As(err, &f) {
		return err
	}
	if err := v.add(Event{Type: TaskFailed, TaskFailed: &TaskErrorDetails{of, f.name, f.cause}}); err != nil {
		return err
	}
	if f.name == errRuntime {
		return f
	}
	return &failure{f.name, f.cause, v.last}
}

// text is a string argument of a task.
func (v *visit) text(arguments map[string]any, name string) (string, error) {
	s, ok := arguments[name].(string)
	if !ok {
		return "", v.runtime("The value for the field '%s' must be a string", name)
	}
	return s, nil
}

// startExecution starts another execution. A refusal is named as Step Functions' own integration names it.
func (v *visit) startExecution(arguments map[string]any) (Execution, error) {
	machine, err := v.text(arguments, "StateMachineArn")
	if err != nil {
		return Execution{}, err
	}
	var name string
	if _, ok := arguments["Name"]; ok {
		if name, err = v.text(arguments, "Name"); err != nil {
			return Execution{}, err
		}
		if err := checkName(name); err != nil {
			return Execution{}, serviceFailure(err)
		}
	}
	input := ""
	if in, ok := arguments["Input"]; ok {
		if input, err = encode(in); err != nil {
			return Execution{}, err
		}
	}
	// Not cut off when the visit ends: a start is either made or not.
	x, err := v.run.e.Start(context.WithoutCancel(v.ctx), machine, name, []byte(input))
	if err != nil {
		return Execution{}, serviceFailure(err)
	}
	return x, nil
}

// serviceFailure names an error of the executor's API as the error of a task. One that is not a refusal, such as a
// store that does not answer, is a client's error to Step Functions, and is worth a retry.
func serviceFailure(err error) error {
	if errors.Is(err, ErrClosed) {
		return err
	}
	var refused *APIError
	if errors.As(err, &refused) {
		return &failure{name: "StepFunctions." + refused.Code + "Exception", cause: refused.Message}
	}
	return &failure{name: "StepFunctions.SdkClientException", cause: err.Error()}
}

func started(x Execution) map[string]any {
	return map[string]any{"ExecutionArn": x.ARN, "StartDate": integer(x.StartedAt.UnixMilli())}
}

// startExecutionSync starts another execution and waits for its end. When the task ends before, by timeout or because
// its own execution ends, the other execution is stopped: nobody would take its result.
func (v *visit) startExecutionSync(of TaskDetails, arguments map[string]any) (any, error) {
	child, err := v.startExecution(arguments)
	if err != nil {
		return nil, err
	}
	submitted, err := newDoc(started(child))
	if err != nil {
		return nil, err
	}
	e := v.run.e
	ctx, release := newDeadline(v.ctx, e.timers, v.state.timeout)
	defer release()
	err = v.add(Event{Type: TaskSubmitted, TaskSubmitted: &TaskOutputDetails{TaskDetails: of, Output: submitted.text}})
	if err == nil {
		var ended Execution
		if ended, err = e.Wait(ctx, child.ARN); err == nil {
			return described(ended)
		}
	}
	switch {
	case e.base.Err() != nil:
		return nil, ErrClosed
	case v.ctx.Err() == nil && ctx.Err() == nil && !errors.Is(err, errHistoryFull):
		// The store does not answer. The other execution goes on, and a retry finds it.
		return nil, serviceFailure(err)
	}
	if _, stopErr := e.Stop(e.base, child.ARN, "", ""); stopErr != nil && v.ctx.Err() == nil {
		return nil, serviceFailure(stopErr)
	}
	switch {
	case v.ctx.Err() != nil:
		return nil, context.Cause(v.ctx)
	case ctx.Err() == nil:
		return nil, err
	}
	return nil, errTimedOut
}

// described is the result of startExecution.sync:2: what DescribeExecution answers, with input and output as JSON and
// not as text. An execution that did not succeed is a failure with that answer as its cause.
func described(x Execution) (any, error) {
	d := map[string]any{
		"ExecutionArn": x.ARN, "StateMachineArn": x.Machine, "Name": x.Name, "Status": string(x.Status),
		"StartDate": integer(x.StartedAt.UnixMilli()), "StopDate": integer(x.StoppedAt.UnixMilli()),
		"Input": string(x.Input), "InputDetails": map[string]any{"Included": true},
	}
	if x.Status != StatusSucceeded {
		if x.Error != "" {
			d["Error"] = x.Error
		}
		if x.Cause != "" {
			d["Cause"] = x.Cause
		}
		cause, err := encode(d)
		if err != nil {
			return nil, err
		}
		return nil, &failure{name: errTaskFailed, cause: cause}
	}
	input, err := decode(x.Input)
	if err != nil {
		return nil, err
	}
	output, err := decode(x.Output)
	if err != nil {
		return nil, err
	}
	d["Input"], d["Output"], d["OutputDetails"] = input, output, map[string]any{"Included": true}
	return d, nil
}
