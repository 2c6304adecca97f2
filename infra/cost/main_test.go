package main

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/prices"
)

func TestTheDocumentedCostIsTheComputedOne(t *testing.T) {
	deploys, err := read("../testdata/counts.json")
	if err != nil {
		t.Fatal(err)
	}
	var computed bytes.Buffer
	report(&computed, deploys)
	docs, err := os.ReadFile("../../docs/self-hosting.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(docs), computed.String()) {
		t.Errorf("docs/self-hosting.md does not have what `go run ./infra/cost infra/testdata/counts.json` prints:\n%s", computed.String())
	}
	for _, p := range prices.Table() {
		if !strings.Contains(string(docs), p.Source) {
			t.Errorf("docs/self-hosting.md does not name the source %s", p.Source)
		}
	}
}

func TestABillAddsUp(t *testing.T) {
	c := counted{
		Transitions: 1000, Invocations: map[string]int{"provisioner": 100},
		Requests: map[string]int{"dynamodb:ConditionCheckItem": 10, "dynamodb:PutItem": 30, "dynamodb:Query": 5, "s3:PutObject": 20, "s3:GetObject": 50, "kms:Decrypt": 3},
	}
	want := 1000*0.000025 + 100*2e-7 + 100*0.5*8*0.0000133334 + (60+40)*0.625e-6 + 20*0.125e-6 + 20*5e-6 + 50*4e-7 + 3*3e-6 + 100*loggedEach*0.5
	if got := total(c.bill()); math.Abs(got-want) > 1e-9 {
		t.Errorf("the sum is %v, want %v", got, want)
	}
	for _, l := range append(c.bill(), atRest()...) {
		if _, ok := prices.Table()[l.price]; !ok {
			t.Errorf("%s has no price", l.price)
		}
	}
}
