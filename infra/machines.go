package main

import (
	_ "embed"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/jsii-runtime-go"

	"github.com/slipway-cdk/slipway/statemachine"
)

// diedDefinition turns EventBridge's notice of a dead execution into the settle machine's input. It is no part
// of a run and so not among the definitions that the local executor shares: it calls an intrinsic function.
//
//go:embed died.asl.json
var diedDefinition []byte

type machines struct {
	run, settle, died awsstepfunctions.CfnStateMachine
}

// all are the machines in the order of the dashboard.
func (m machines) all() []awsstepfunctions.CfnStateMachine {
	return []awsstepfunctions.CfnStateMachine{m.run, m.settle, m.died}
}

// newMachines makes the machines from the last that is called to the first.
func newMachines(s settings, fns functions) machines {
	var m machines
	m.settle = newMachine(s, "SettleMachine", "settle", statemachine.Settle,
		map[string]any{statemachine.JanitorFunction: fns.janitor.AttrArn()},
		statement{Sid: "Functions", Action: []string{"lambda:InvokeFunction"}, Resource: []any{fns.janitor.AttrArn()}})
	startSettling := statement{Sid: "Settle", Action: []string{"states:StartExecution"}, Resource: []any{m.settle.AttrArn()}}
	m.run = newMachine(s, "RunMachine", "run", statemachine.Run,
		map[string]any{
			statemachine.PlannerFunction: fns.planner.AttrArn(), statemachine.ProvisionerFunction: fns.provisioner.AttrArn(),
			statemachine.PublisherFunction: fns.publisher.AttrArn(), statemachine.SettleStateMachine: m.settle.AttrArn(),
		},
		statement{Sid: "Functions", Action: []string{"lambda:InvokeFunction"}, Resource: []any{
			fns.planner.AttrArn(), fns.provisioner.AttrArn(), fns.publisher.AttrArn(),
		}},
		startSettling,
		// The runs of a deployment's stacks, and the successor of a long run.
		statement{Sid: "StartRuns", Action: []string{"states:StartExecution"}, Resource: []any{s.runMachineARN()}},
		// A run waits for its successor through a rule that Step Functions manages
		// (https://docs.aws.amazon.com/step-functions/latest/dg/connect-stepfunctions.html).
		statement{Sid: "WaitForSuccessor", Action: []string{"states:DescribeExecution", "states:StopExecution"}, Resource: []any{s.runExecutionsARN()}},
		statement{Sid: "ManagedRule", Action: []string{"events:PutTargets", "events:PutRule", "events:DescribeRule"}, Resource: []any{
			arn("events", "rule/StepFunctionsGetEventsForStepFunctionsExecutionRule"),
		}})
	m.died = newMachine(s, "DiedMachine", "died", diedDefinition, map[string]any{statemachine.SettleStateMachine: m.settle.AttrArn()}, startSettling)
	return m
}

// newMachine is a standard state machine. Its log tells of errors, without what goes in and out of states.
func newMachine(s settings, id, name string, definition []byte, substitutions map[string]any, may ...statement) awsstepfunctions.CfnStateMachine {
	// Names under /aws/vendedlogs/ do not count towards the size of the account's log resource policy
	// (https://docs.aws.amazon.com/step-functions/latest/dg/bp-cwl.html).
	log := newLogGroup(s, id+"Log", "/aws/vendedlogs/states/"+*s.name(name))
	role := newRole(s, id+"Role", "states.amazonaws.com", "Slipway: the state machine "+name, append(may, machineObservation()...)...)
	return awsstepfunctions.NewCfnStateMachine(s.stack, jsii.String(id), &awsstepfunctions.CfnStateMachineProps{
		StateMachineName: s.name(name), StateMachineType: jsii.String("STANDARD"), RoleArn: role.AttrArn(),
		DefinitionString: jsii.String(string(definition)), DefinitionSubstitutions: substitutions,
		TracingConfiguration: &awsstepfunctions.CfnStateMachine_TracingConfigurationProperty{Enabled: true},
		LoggingConfiguration: &awsstepfunctions.CfnStateMachine_LoggingConfigurationProperty{
			Level: jsii.String("ERROR"), IncludeExecutionData: false,
			Destinations: []any{&awsstepfunctions.CfnStateMachine_LogDestinationProperty{
				CloudWatchLogsLogGroup: &awsstepfunctions.CfnStateMachine_CloudWatchLogsLogGroupProperty{LogGroupArn: log.AttrArn()},
			}},
		},
	})
}
