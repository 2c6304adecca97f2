package asl

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// The predefined error names that the executor raises or matches
// (https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html).
const (
	errAll        = "States.ALL"
	errTaskFailed = "States.TaskFailed"
	errTimeout    = "States.Timeout"
	errRuntime    = "States.Runtime"
	errDataLimit  = "States.DataLimitExceeded"
	errResultPath = "States.ResultPathMatchFailure"
	errNoChoice   = "States.NoChoiceMatched"
)

// failure is an error of a state or an execution: what Retry and Catch match.
type failure struct {
	name, cause string
	// at is the event that tells of the failure; 0 for States.Runtime, which is told by ExecutionFailed alone.
	at int64
}

func (f *failure) Error() string { return f.name + ": " + f.cause }

// matches says whether ErrorEquals catches the failure. States.Runtime is never caught, and
// States.DataLimitExceeded only by its own name.
func (f *failure) matches(names []string) bool {
	if f.name == errRuntime {
		return false
	}
	return slices.ContainsFunc(names, func(name string) bool {
		switch name {
		case errAll:
			return f.name != errDataLimit
		case errTaskFailed:
			return f.name != errDataLimit && f.name != errTimeout
		}
		return name == f.name
	})
}

// FunctionError is the failure of a function that a task has invoked. Type becomes the error name that Retry
// and Catch see.
type FunctionError struct {
	// Type is the errorType of Lambda's error document.
	Type string
	// Message is its errorMessage.
	Message string
}

func (e *FunctionError) Error() string {
	if e.Message == "" {
		return e.Type
	}
	return e.Type + ": " + e.Message
}

// ErrFunctionNotFound is what Functions.Invoke returns for a function that does not exist. The task fails with
// Lambda.ResourceNotFoundException.
var ErrFunctionNotFound = errors.New("function not found")

// functionFailure turns what Invoke returned into the task's error name and cause. An error that is not a
// *FunctionError is named as the Lambda runtime for Go names it, by its type.
func functionFailure(function string, err error) *failure {
	if errors.Is(err, ErrFunctionNotFound) {
		return &failure{name: "Lambda.ResourceNotFoundException", cause: "Function not found: " + function}
	}
	var f *FunctionError
	if !errors.As(err, &f) {
		f = &FunctionError{Type: typeName(err), Message: err.Error()}
	}
	cause, encodeErr := encode(struct {
		Message string `json:"errorMessage"`
		Type    string `json:"errorType"`
	}{f.Message, f.Type})
	if encodeErr != nil {
		cause = f.Message
	}
	return &failure{name: f.Type, cause: cause}
}

func typeName(v any) string {
	t := reflect.TypeOf(v)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Name() == "" {
		return t.String()
	}
	return t.Name()
}

// APIError is a refusal of StartExecution or of another call, with Step Functions' code for it
// (https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html#API_StartExecution_Errors).
type APIError struct {
	// Code is one of the Code constants.
	Code    string
	Message string
}

func (e *APIError) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

// The codes of APIError.
const (
	CodeExecutionAlreadyExists   = "ExecutionAlreadyExists"
	CodeInvalidExecutionInput    = "InvalidExecutionInput"
	CodeInvalidName              = "InvalidName"
	CodeInvalidArn               = "InvalidArn"
	CodeStateMachineDoesNotExist = "StateMachineDoesNotExist"
)

// IsExecutionAlreadyExists says that an execution was not started because the machine has another one of
// that name, which has ended or has another input.
func IsExecutionAlreadyExists(err error) bool {
	var e *APIError
	return errors.As(err, &e) && e.Code == CodeExecutionAlreadyExists
}

// Errors of an Executor besides APIError and those of its Store.
var (
	// ErrClosed says that the executor is closed.
	ErrClosed = errors.New("executor is closed")
)
