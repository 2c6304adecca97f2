package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"github.com/slipway-cdk/slipway/pkg/controlplane"
)

// alarm is a sum over five minutes that must stay below a threshold.
type alarm struct {
	id, why           string
	namespace, metric string
	dimension         string
	of                *string
	statistic         string
	threshold         float64
}

// newWatch is what tells that the control plane itself is unwell: alarms and a dashboard. A deploy that fails is
// not among the alarms: it is told to who has started it.
func newWatch(s settings, kept stores, fns functions, m machines, undelivered awssqs.CfnQueue) {
	alarms := []alarm{
		{"SettleFailed", "A dead run could not be settled: its lock is held and its state not saved.",
			"AWS/States", "ExecutionsFailed", "StateMachineArn", m.settle.AttrArn(), "Sum", 1},
		{"SettleNotStarted", "The settling of a dead run could not be started.",
			"AWS/States", "ExecutionsFailed", "StateMachineArn", m.died.AttrArn(), "Sum", 1},
		{"UndeliveredEvents", "The death of a run, or an object of an inbox, could not be delivered: see the queue.",
			"AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", undelivered.AttrQueueName(), "Maximum", 1},
	}
	for _, fn := range fns.all() {
		// One failure is repeated by whoever has invoked the function, and nothing to wake anybody for.
		alarms = append(alarms, alarm{fn.id + "Errors", "Invocations fail again and again: see the function's log.",
			"AWS/Lambda", "Errors", "FunctionName", fn.Ref(), "Sum", 5})
	}
	for _, a := range alarms {
		made := awscloudwatch.NewCfnAlarm(s.stack, jsii.String(a.id), &awscloudwatch.CfnAlarmProps{
			AlarmName: s.name(a.id), AlarmDescription: jsii.String("Slipway: " + a.why),
			Namespace: jsii.String(a.namespace), MetricName: jsii.String(a.metric), Statistic: jsii.String(a.statistic),
			Dimensions: []any{&awscloudwatch.CfnAlarm_DimensionProperty{Name: jsii.String(a.dimension), Value: a.of}},
			Period:     jsii.Number(300), EvaluationPeriods: jsii.Number(1), Threshold: jsii.Number(a.threshold),
			ComparisonOperator: jsii.String("GreaterThanOrEqualToThreshold"), TreatMissingData: jsii.String("notBreaching"),
		})
		made.AddPropertyOverride(jsii.String("AlarmActions"), when(s.hasAlarmTopic, []any{s.alarmTopic}))
	}
	newDashboard(s, kept, fns, m, undelivered)
}

// newDashboard shows executions, invocations and what they take.
func newDashboard(s settings, kept stores, fns functions, m machines, undelivered awssqs.CfnQueue) {
	var widgets []any
	graph := func(title, statistic string, metrics ...any) {
		n := len(widgets)
		widgets = append(widgets, map[string]any{
			"type": "metric", "x": n % 2 * 12, "y": n / 2 * 6, "width": 12, "height": 6,
			"properties": map[string]any{
				"title": title, "stat": statistic, "period": 300, "view": "timeSeries", "region": awscdk.Aws_REGION(), "metrics": metrics,
			},
		})
	}
	// The functions' own metrics, as they write them.
	own := func(metric, dimension string, values ...string) (out []any) {
		for _, v := range values {
			out = append(out, []any{controlplane.MetricsNamespace, metric, controlplane.PlaneDimension, s.prefix, dimension, v})
		}
		return out
	}
	perFunction := func(metric string) (out []any) {
		for _, f := range fns.all() {
			out = append(out, []any{"AWS/Lambda", metric, "FunctionName", f.Ref()})
		}
		return out
	}
	perMachine := func(metric string) (out []any) {
		for _, machine := range m.all() {
			out = append(out, []any{"AWS/States", metric, "StateMachineArn", machine.AttrArn(), map[string]any{"label": machine.AttrName()}})
		}
		return out
	}
	perTable := func(metrics ...string) (out []any) {
		for _, metric := range metrics {
			out = append(out, []any{"AWS/DynamoDB", metric, "TableName", kept.table.Ref()})
		}
		return out
	}
	graph("Runs by result", "Sum", own(controlplane.RunsMetric, controlplane.ResultDimension, "SUCCEEDED", "PARTIAL", "FAILED")...)
	graph("Duration of runs (s)", "p90", []any{controlplane.MetricsNamespace, controlplane.RunDurationMetric, controlplane.PlaneDimension, s.prefix})
	graph("Operations by status", "Sum", own(controlplane.OperationsMetric, controlplane.StatusDimension, "SUCCEEDED", "FAILED", "SKIPPED")...)
	graph("Dead runs settled", "Sum", []any{controlplane.MetricsNamespace, controlplane.SettledMetric, controlplane.PlaneDimension, s.prefix})
	graph("Executions started", "Sum", perMachine("ExecutionsStarted")...)
	graph("Executions failed", "Sum", perMachine("ExecutionsFailed")...)
	graph("Invocations", "Sum", perFunction("Invocations")...)
	graph("Failed invocations", "Sum", perFunction("Errors")...)
	graph("Duration, 95 % of invocations (ms)", "p95", perFunction("Duration")...)
	graph("Throttled invocations", "Sum", perFunction("Throttles")...)
	graph("Run log: capacity units", "Sum", perTable("ConsumedReadCapacityUnits", "ConsumedWriteCapacityUnits")...)
	graph("Events that could not be delivered", "Maximum", []any{"AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", undelivered.AttrQueueName()})
	awscloudwatch.NewCfnDashboard(s.stack, jsii.String("Dashboard"), &awscloudwatch.CfnDashboardProps{
		DashboardName: s.prefix, DashboardBody: s.stack.ToJsonString(map[string]any{"widgets": widgets}, nil),
	})
}
