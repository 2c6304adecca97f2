package controlplane

import (
	"encoding/json"
	"io"
	"time"

	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// MetricsNamespace is the namespace of the control plane's own metrics in CloudWatch. Durations, failures and throttles
// of functions and executions are AWS's own metrics and not among them: every metric here costs its keeper.
const MetricsNamespace = "Slipway"

// Names of metrics, and of the dimensions that divide them. Every metric has PlaneDimension as well.
const (
	PlaneDimension  = "Plane"
	ResultDimension = "Result" // of RunsMetric: SUCCEEDED, FAILED, PARTIAL
	StatusDimension = "Status" // of OperationsMetric: SUCCEEDED, FAILED, SKIPPED

	RunsMetric        = "Runs"        // runs that have ended, those of deployments and of stacks
	RunDurationMetric = "RunDuration" // from the submission of a run to its end, in seconds
	OperationsMetric  = "Operations"  // operations on resources and assets that have ended
	SettledMetric     = "Settled"     // dead runs that were settled
)

// metrics writes metrics in CloudWatch's embedded format: a line of a function's log that CloudWatch reads numbers from
// (https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html).
type metrics struct {
	out   io.Writer
	plane string
	now   func() time.Time
}

// metric is one number.
type metric struct {
	name, unit string
	value      float64
	dimension  string // "" for PlaneDimension alone
	of         string // the dimension's value
}

// write writes metrics, each on a line of its own, with the ids that tell what they are about: ids are no dimensions.
func (m *metrics) write(found []metric, about map[string]string) {
	if m == nil || m.out == nil {
		return
	}
	for _, f := range found {
		dimensions := []string{PlaneDimension}
		line := map[string]any{PlaneDimension: m.plane, f.name: f.value}
		if f.dimension != "" {
			dimensions = append(dimensions, f.dimension)
			line[f.dimension] = f.of
		}
		for k, v := range about {
			if v != "" {
				line[k] = v
			}
		}
		line["_aws"] = map[string]any{
			"Timestamp": m.now().UnixMilli(),
			"CloudWatchMetrics": []any{map[string]any{
				"Namespace": MetricsNamespace, "Dimensions": []any{dimensions},
				"Metrics": []any{map[string]any{"Name": f.name, "Unit": f.unit}},
			}},
		}
		b, err := json.Marshal(line)
		if err != nil {
			continue // it is made of texts and numbers
		}
		_, _ = m.out.Write(append(b, '\n')) // a number that is lost is no reason to fail
	}
}

// measured reads from the answer of a function what has come to its end. A repeated invocation counts again, which the
// alarms and graphs bear.
func measured(payload, answer []byte, now time.Time) []metric {
	var asked struct {
		Action string `json:"action"`
		RunID  string `json:"runId"`
	}
	var told struct {
		Kind    run.StepKind    `json:"kind"`
		Result  runlog.Result   `json:"result"`
		Status  runlog.OpStatus `json:"status"`
		Settled bool            `json:"settled"`
	}
	if json.Unmarshal(payload, &asked) != nil || json.Unmarshal(answer, &told) != nil {
		return nil
	}
	ended := told.Result
	if told.Kind == run.StepRefused {
		ended = runlog.ResultFailed
	}
	var out []metric
	switch {
	case asked.Action == run.ActionClose || told.Kind == run.StepRefused:
		out = append(out, metric{name: RunsMetric, unit: "Count", value: 1, dimension: ResultDimension, of: string(ended)})
		if began, err := time.Parse("20060102T150405.000Z", stampOf(asked.RunID)); err == nil && now.After(began) {
			out = append(out, metric{name: RunDurationMetric, unit: "Seconds", value: now.Sub(began).Seconds()})
		}
	case asked.Action == run.ActionSettle && told.Settled:
		out = append(out, metric{name: SettledMetric, unit: "Count", value: 1})
	case asked.Action == "" && told.Status.Ended():
		out = append(out, metric{name: OperationsMetric, unit: "Count", value: 1, dimension: StatusDimension, of: string(told.Status)})
	}
	return out
}

// stampOf is the moment in a run id, "20261129T213124236Z-9d519276", as time.Parse reads it.
func stampOf(runID string) string {
	if len(runID) < 19 {
		return ""
	}
	return runID[:15] + "." + runID[15:19]
}
