package diff

import (
	"bytes"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/template"
)

// large is a stack of n functions with roles, queues and tags that refer to each other.
func large(n int) string {
	var b strings.Builder
	b.WriteString(`{"Resources":{`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		switch i % 4 {
		case 0:
			fmt.Fprintf(&b, `"R%d":{"Type":"AWS::IAM::Role","Properties":{"AssumeRolePolicyDocument":{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sts:AssumeRole","Principal":{"Service":"lambda.amazonaws.com"}}]},"Tags":[{"Key":"a","Value":"b"}]}}`, i)
		case 1:
			fmt.Fprintf(&b, `"R%d":{"Type":"AWS::SQS::Queue","Properties":{"DelaySeconds":5,"Tags":[{"Key":"n","Value":"%d"}]}}`, i, i)
		case 2:
			fmt.Fprintf(&b, `"R%d":{"Type":"AWS::Lambda::Function","DependsOn":["R%d"],"Properties":{"Role":{"Fn::GetAtt":["R%d","Arn"]},"Code":{"S3Bucket":{"Fn::Sub":"cdk-${AWS::AccountId}-${AWS::Region}"},"S3Key":"k"},"Environment":{"Variables":{"Q":{"Ref":"R%d"},"X":"y"}}}}`, i, i-2, i-2, i-1)
		default:
			fmt.Fprintf(&b, `"R%d":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":{"Fn::Join":["",["arn:",{"Ref":"AWS::Partition"},":x:",{"Fn::GetAtt":["R%d","Arn"]}]]}}}`, i, i-1)
		}
	}
	b.WriteString(`}}`)
	return b.String()
}

// planned is what a plan does between reading the template and ordering operations: dependencies, check, diff
// (which makes the graph), outputs.
func planned(tb testing.TB, in Input) Result {
	in.Dependencies = template.Dependencies(in.Template, in.Conditions)
	if diags := Check(in); diags.HasErrors() {
		tb.Fatal(diags[0])
	}
	result, diags := Compute(in)
	if diags.HasErrors() {
		tb.Fatal(diags[0])
	}
	in.Scope = result.Scope
	EvaluateOutputs(in)
	return result
}

// deployedLarge is a deployed stack of n resources and a template that changes a quarter of them.
func deployedLarge(tb testing.TB, n int) Input {
	in, err := inputOf([]byte(large(n)), nil)
	if err != nil {
		tb.Fatal(err)
	}
	changed, err := inputOf([]byte(strings.ReplaceAll(large(n), `"DelaySeconds":5`, `"DelaySeconds":6`)), nil)
	if err != nil {
		tb.Fatal(err)
	}
	changed.Record = mustDeploy(tb, in)
	return changed
}

// BenchmarkPlan: run it with -cpu 1. 500 resources are to take 50 ms at most, 10,000 two seconds.
func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{500, 1000, 2000, 5000, 10_000} {
		in := deployedLarge(b, n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				planned(b, in)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/resource")
		})
	}
}

// TestPlanningGrowsWithTheTemplate holds planning to its limits: what is allocated grows with the number of
// resources and no faster, and 10,000 of them fit into 512 MB and two seconds of one core.
func TestPlanningGrowsWithTheTemplate(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(512 << 20))
	var first float64
	for _, n := range []int{1000, 2000, 5000, 10_000} {
		in := deployedLarge(t, n)
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := cpuTime()
		result := planned(t, in)
		took := cpuTime() - began
		runtime.ReadMemStats(&after)
		if len(result.Changes) != n/4 || result.Unchanged != n-n/4 {
			t.Errorf("%d resources: %d changes, %d unchanged", n, len(result.Changes), result.Unchanged)
		}
		each := float64(after.TotalAlloc-before.TotalAlloc) / float64(n)
		if first == 0 {
			first = each
		}
		t.Logf("%6d resources: %8v, %6.0f bytes allocated per resource, %4d MB in use", n, took.Round(time.Millisecond), each, after.HeapInuse>>20)
		if each > 1.25*first {
			t.Errorf("%d resources allocate %.0f bytes each, %.2f times as much as 1,000 do", n, each, each/first)
		}
		if after.HeapInuse > 512<<20 || took > 2*time.Second {
			t.Errorf("%d resources: %v, %d MB in use", n, took, after.HeapInuse>>20)
		}
	}
}

// TestALargeStackThatIsRenamedPlans: every resource has another logical ID, so all are compared with all that leave.
func TestALargeStackThatIsRenamedPlans(t *testing.T) {
	const n = 5000
	in := deployedLarge(t, n)
	other, err := inputOf([]byte(regexp.MustCompile(`\bR(\d+)\b`).ReplaceAllString(large(n), "Other$1")), nil)
	if err != nil {
		t.Fatal(err)
	}
	other.Record = in.Record
	began := cpuTime()
	result, diags := Compute(other)
	took := cpuTime() - began
	if len(result.Changes) != 2*n || diags.HasErrors() {
		t.Errorf("%d changes, %v", len(result.Changes), diags)
	}
	want := fmt.Sprintf("%d more resources", n-mostWarnings)
	if last := diags[len(diags)-1].Summary; len(diags) != mostWarnings+1 || !strings.Contains(last, want) {
		t.Errorf("%d warnings, the last is %q, want %q", len(diags), last, want)
	}
	if took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	t.Logf("%d resources renamed: %v", n, took.Round(time.Millisecond))
}

// TestALargeTemplatePlans: five times the size that CloudFormation takes, with text in every script.
func TestALargeTemplatePlans(t *testing.T) {
	const n, text = 2000, "Grüße, 你好, \U0001F680 "
	var source bytes.Buffer
	source.WriteString(`{"Resources":{`)
	for i := range n {
		if i > 0 {
			source.WriteByte(',')
		}
		before := ""
		if i > 0 {
			before = fmt.Sprintf(`,"Description":{"Fn::Sub":"after ${P%d}"}`, i-1)
		}
		fmt.Fprintf(&source, `"P%d":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":"%d %s"%s}}`,
			i, i, strings.Repeat(text, 2500/len(text)), before)
	}
	source.WriteString(`}}`)
	if source.Len() < 5_000_000 {
		t.Fatalf("the template has %d bytes only", source.Len())
	}
	began := cpuTime()
	in, err := inputOf(source.Bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	first := planned(t, in)
	if len(first.Changes) != n {
		t.Errorf("%d changes", len(first.Changes))
	}
	value, _ := first.Desired["P7"]["Value"].(string)
	if want := "7 " + strings.Repeat(text, 2500/len(text)); value != want {
		t.Errorf("the text has changed: %d bytes, want %d", len(value), len(want))
	}
	in.Record = mustDeploy(t, in)
	if again := planned(t, in); len(again.Changes) > 0 {
		t.Errorf("%d changes after the deploy", len(again.Changes))
	}
	t.Logf("%d bytes planned twice in %v", source.Len(), (cpuTime() - began).Round(time.Millisecond))
}

func BenchmarkCompute(b *testing.B) {
	for _, n := range []int{500, 1000, 2000, 5000, 10_000} {
		in, err := inputOf([]byte(large(n)), nil)
		if err != nil {
			b.Fatal(err)
		}
		rec, diags := deploy(in)
		if diags.HasErrors() {
			b.Fatal(diags)
		}
		changed, err := inputOf([]byte(strings.ReplaceAll(large(n), `"DelaySeconds":5`, `"DelaySeconds":6`)), nil)
		if err != nil {
			b.Fatal(err)
		}
		for _, bench := range []struct {
			name string
			in   Input
			rec  bool
		}{{"nothing deployed", in, false}, {"nothing changes", in, true}, {"a quarter changes", changed, true}} {
			b.Run(fmt.Sprintf("%d/%s", n, bench.name), func(b *testing.B) {
				in := bench.in
				if bench.rec {
					in.Record = rec
				}
				b.ReportAllocs()
				for b.Loop() {
					if _, diags := Compute(in); diags.HasErrors() {
						b.Fatal(diags)
					}
				}
			})
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, n := range []int{500, 10_000} {
		in, err := inputOf([]byte(large(n)), nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if diags := Check(in); diags.HasErrors() {
					b.Fatal(diags[0])
				}
			}
		})
	}
}
