package state

import (
	"encoding/json"
	"fmt"
	"testing"
)

// wide is a record of n resources of usual size.
func wide(n int) *Record {
	r := &Record{Version: 8, StackName: "Wide", Region: "eu-west-1", Resources: map[string]*Resource{}, Outputs: map[string]any{}}
	for i := range n {
		props := map[string]any{}
		for k := range 12 {
			props[fmt.Sprint("Property", k)] = map[string]any{"Ref": fmt.Sprint("value ", k), "N": json.Number("42"), "L": []any{"a", true, nil}}
		}
		r.Resources[fmt.Sprintf("Resource%04d", i)] = &Resource{
			PhysicalID: fmt.Sprint("arn:aws:sqs:eu-west-1:111111111111:q", i), ResourceType: "AWS::SQS::Queue",
			Properties: props, ObservedProperties: props, Attributes: map[string]any{"Arn": "a", "QueueUrl": "u"},
			Dependencies: []string{"A", "B"}, DeletionPolicy: "Delete", ProvisionedBy: "sdk",
		}
	}
	return r
}

func BenchmarkRecordOf500Resources(b *testing.B) {
	r := wide(500)
	data, err := r.Encode()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if _, err := r.Encode(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if _, err := Decode(data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("digest", func(b *testing.B) {
		for b.Loop() {
			if _, err := Digest(r); err != nil {
				b.Fatal(err)
			}
		}
	})
}
