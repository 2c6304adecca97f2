package views

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"

	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/schema"
)

// bigPlan has every kind of change.
func bigPlan() []plan.StackView {
	long := map[string]any{}
	for _, k := range strings.Split("abcdefghijklmnopqrstuvwxyzABCDEFGHIJ", "") {
		long[k] = json.Number("1")
	}
	return []plan.StackView{
		{
			Stack: "shop-data", Region: "eu-west-1", Account: "111111111111", Command: "deploy", Unchanged: 7,
			Changes: []diff.Change{
				{LogicalID: "Table", Type: "AWS::DynamoDB::Table", Action: diff.ActionCreate, Changes: []diff.PropertyChange{{Path: "TableName", New: "t"}}},
				{LogicalID: "Queue", Type: "AWS::SQS::Queue", Action: diff.ActionUpdate, Changes: []diff.PropertyChange{
					{Path: "VisibilityTimeout", Old: json.Number("30"), New: json.Number("60")},
					{Path: "RedrivePolicy", New: map[string]any{"maxReceiveCount": json.Number("3")}},
					{Path: "Tags", Old: []any{map[string]any{"Key": "a", "Value": "<b>"}}},
				}},
				{LogicalID: "Bucket", Type: "AWS::S3::Bucket", Action: diff.ActionReplace, Retain: true, Changes: []diff.PropertyChange{
					{Path: "BucketName", Old: "old", New: "new", Replacement: schema.ReplaceAlways},
					{Path: "VersioningConfiguration.Status", Old: "Suspended", New: "Enabled"},
				}},
				{LogicalID: "Policy", Type: "AWS::S3::BucketPolicy", Action: diff.ActionReplace, Changes: []diff.PropertyChange{
					{Path: "Bucket", Old: "old", Unknown: true, NewRefs: []string{"Bucket"}, Replacement: schema.ReplaceAlways, Cause: "Bucket"},
				}},
				{LogicalID: "Cluster", Type: "AWS::RDS::DBCluster", Action: diff.ActionReplace, Stateful: true, DeleteFirst: true, Changes: []diff.PropertyChange{
					{Path: "Engine", Old: "a", New: "b", Replacement: schema.ReplaceMaybe},
				}},
				{LogicalID: "Function", Type: "AWS::Lambda::Function", Action: diff.ActionUpdate, Speculative: true, Changes: []diff.PropertyChange{
					{Path: "Environment.Variables.QUEUE", Unknown: true, Old: "q", NewRefs: []string{"Queue.Arn", "Queue"}, Cause: "Queue"},
				}},
				{LogicalID: "Thing", Type: "AWS::SNS::Topic", OldType: "AWS::SQS::Queue", Action: diff.ActionReplace},
				{LogicalID: "Alarm", Type: "AWS::CloudWatch::Alarm", Action: diff.ActionNone, RecordOnly: true},
				{LogicalID: "Same", Type: "AWS::SNS::Topic", Action: diff.ActionNone},
				{LogicalID: "Old", Type: "AWS::Logs::LogGroup", Action: diff.ActionDelete, Retain: true},
				{LogicalID: "Gone", Type: "AWS::SQS::Queue", Action: diff.ActionDelete, Stateful: true},
				{LogicalID: "名前の長い資源", Type: "Custom::\x1b]0;evil\aThing\u202e", Action: diff.ActionUpdate, Changes: []diff.PropertyChange{
					{Path: "P\x1b[31m", Old: "line\nbreak \x1b[2J", New: long},
				}},
			},
			Outputs: []diff.OutputChange{
				{Name: "Url", Kind: "add", Unknown: true},
				{Name: "Name", Kind: "modify", Export: true, Old: "a", New: "b"},
				{Name: "Secret", Kind: "modify", Withheld: true, New: "***"},
				{Name: "Dead", Kind: "remove", Old: "x"},
			},
		},
		{Stack: "shop-web", Region: "us-east-1", Unchanged: 1, Outputs: []diff.OutputChange{{Name: "Maybe", Kind: "modify", Unknown: true}}},
	}
}

func TestPlanForPeople(t *testing.T) {
	for name, style := range map[string]PlanStyle{"plan.golden": Summary, "diff.golden": Detail} {
		t.Run(name, func(t *testing.T) {
			s, out, _ := buffers()
			s.Plan(s.Out, bigPlan(), style)
			golden(t, name, out.String())
			if strings.ContainsAny(out.String(), "\x1b\a\u202e") {
				t.Error("a control character of the template reached the output")
			}
		})
	}
}

func TestPlanNeverWrapsOnATerminal(t *testing.T) {
	for _, width := range []int{1, 7, 20, 40, 79, 200} {
		v := newTerminal(t, width, 50)
		s := &Streams{Out: v.stream()}
		s.Plan(s.Out, bigPlan(), Detail)
		for _, line := range v.lines {
			if w := runewidth.StringWidth(line); w > width {
				t.Errorf("width %d: a line is %d columns wide: %q", width, w, line)
			}
		}
		if v.wrapped > 0 {
			t.Errorf("width %d: %d lines wrapped", width, v.wrapped)
		}
	}
}

func TestPlanNamesTheActionInWordsWithAndWithoutColour(t *testing.T) {
	for _, color := range []bool{false, true} {
		s, out, _ := buffers()
		s.Out.Color = color
		s.Plan(s.Out, bigPlan(), Summary)
		for _, word := range []string{"create", "update", "replace", "delete", "record"} {
			if !strings.Contains(out.String(), word) {
				t.Errorf("colour %v: %q is not in the plan", color, word)
			}
		}
		if strings.Contains(out.String(), "\x1b") != color {
			t.Errorf("colour %v: escapes are wrong", color)
		}
	}
}

func TestCountPlan(t *testing.T) {
	c := CountPlan(bigPlan())
	want := PlanCounts{Create: 1, Update: 3, Replace: 4, Delete: 1, Retain: 1, Record: 1, Unchanged: 8, Outputs: 4}
	if c != want {
		t.Errorf("counted %+v, want %+v", c, want)
	}
	// An output that can't be computed is no change by itself.
	if c := CountPlan(bigPlan()[1:]); c.Any() {
		t.Errorf("%+v counts as a change", c)
	}
	if got := CountPlan(nil).String(); got != "no changes, 0 unchanged" {
		t.Errorf("an empty plan is %q", got)
	}
}
