package local

import (
	"testing"

	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// loopTemplate makes a queue and an output for every name, and a topic that knows one of the queues.
func loopTemplate(names ...any) object {
	return object{
		"Transform": "AWS::LanguageExtensions",
		"Resources": object{
			"Fn::ForEach::Queues": []any{"Name", names, object{
				"Queue${Name}": object{"Type": "AWS::SQS::Queue", "Properties": object{"QueueName": object{"Fn::Sub": "loop-${Name}"}}},
			}},
			"Topic": object{"Type": "AWS::SNS::Topic", "Properties": object{
				"DisplayName": object{"Fn::GetAtt": []any{"QueueOne", "QueueName"}},
			}},
		},
		"Outputs": object{
			"Fn::ForEach::Names": []any{"Name", names, object{
				"Url${Name}": object{"Value": object{"Ref": object{"Fn::Sub": "Queue${Name}"}}},
			}},
			"Count": object{"Value": object{"Fn::Length": names}},
		},
	}
}

func TestALoopIsDeployedAsIfItWereWrittenOut(t *testing.T) {
	p := openPlane(t, Options{Dir: t.TempDir()})
	steps := []struct {
		name  string
		names []any
		want  kinds
	}{
		{"two queues and a topic are made", []any{"One", "Two"}, kinds{created: 3}},
		{"nothing changes", []any{"One", "Two"}, kinds{}},
		{"another turn of the loop is another queue", []any{"One", "Two", "Three"}, kinds{created: 1}},
		{"a turn less is a queue less", []any{"One", "Three"}, kinds{deleted: 1}},
	}
	for _, step := range steps {
		asm := writeApp(t, map[string]object{"Loops": loopTemplate(step.names...)}, nil)
		h := submit(t, p, asm, run.Submission{Command: runlog.CommandDeploy, Options: run.Options{ForceStatefulRecreation: true}})
		if h.Result != runlog.ResultSucceeded {
			t.Fatalf("%s: %s", step.name, story(t, p, h))
		}
		if got := kindsOf(h); got != step.want {
			t.Errorf("%s: %+v, want %+v", step.name, got, step.want)
		}
		rec, _, err := p.States().Load(t.Context(), "Loops", "us-east-1")
		if err != nil {
			t.Fatal(err)
		}
		if len(rec.Outputs) != len(step.names)+1 {
			t.Errorf("%s: %d outputs, want %d", step.name, len(rec.Outputs), len(step.names)+1)
		}
	}
	destroyAll(t, p, writeApp(t, map[string]object{"Loops": loopTemplate("One")}, nil))
}
