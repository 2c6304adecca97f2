package direct

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/provider"
)

type mode string

type input struct {
	Name     *string
	Size     *int32
	On       *bool
	Mode     mode
	Document *string
	Start    *time.Time
	ID       *string
	Rules    []rule
	Labels   map[string]string
}

type rule struct {
	ID   *string
	Days int32
}

func TestIntoWritesPropertiesAsTheInputHasThem(t *testing.T) {
	var in input
	err := Into(map[string]any{
		"Name": json.Number("7"), "Size": "5", "On": "true", "Mode": "fast", "Document": map[string]any{"a": "<b>"}, "Start": "2026-03-01T12:00:00Z",
		"Identifier": "x", "Rules": []any{map[string]any{"Id": "r", "Days": json.Number("3")}}, "Labels": map[string]any{"on": true, "n": json.Number("1")}, "Other": "left",
	}, &in, Renames{"Identifier": "ID"}, "Name", "Size", "On", "Mode", "Document", "Start", "Identifier", "Rules", "Labels")
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := json.Marshal(in)
	want := `{"Name":"7","Size":5,"On":true,"Mode":"fast","Document":"{\"a\":\"\u003cb\u003e\"}","Start":"2026-03-01T12:00:00Z","ID":"x","Rules":[{"ID":"r","Days":3}],"Labels":{"n":"1","on":"true"}}`
	if string(raw) != want {
		t.Errorf("%s", raw)
	}
}

func TestIntoDropsNothingAndTellsNoValue(t *testing.T) {
	for name, properties := range map[string]map[string]any{
		"an unknown part":        {"Rules": []any{map[string]any{"Id": "r", "Colour": "sekrit"}}},
		"text that is no number": {"Size": "sekrit"},
		"an unknown property":    {"Colour": "sekrit"},
	} {
		err := Into(properties, new(input), nil)
		if provider.KindOf(err) != provider.KindInvalid || strings.Contains(err.Error(), "sekrit") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFromReadsAsTheSchemaHasIt(t *testing.T) {
	got := From("AWS::SQS::Queue", map[string]string{
		"DelaySeconds": "5", "FifoQueue": "true", "RedrivePolicy": `{"maxReceiveCount":3}`, "KmsMasterKeyId": "", "QueueArn": "arn", "name": "q",
	}, Renames{"QueueName": "Name"})
	want := map[string]any{
		"DelaySeconds": json.Number("5"), "FifoQueue": true, "QueueName": "q", "RedrivePolicy": map[string]any{"maxReceiveCount": json.Number("3")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSame(t *testing.T) {
	tag := func(k string) map[string]any { return map[string]any{"Key": k, "Value": k} }
	for _, c := range []struct {
		property string
		a, b     any
		same     bool
	}{
		{"DelaySeconds", "5", json.Number("5"), true},
		{"DelaySeconds", "5", "6", false},
		{"DelaySeconds", nil, nil, true},
		{"DelaySeconds", nil, "5", false},
		{"FifoQueue", "true", true, true},
		{"RedrivePolicy", `{"a": [1]}`, map[string]any{"a": []any{json.Number("1")}}, true},
		{"RedrivePolicy", `{"a": [1]}`, `{"a":[1]}`, true},
		{"RedrivePolicy", `{"a": [1, 2]}`, `{"a":[2, 1]}`, false},
		{"Tags", []any{tag("a"), tag("b")}, []any{tag("b"), tag("a")}, true},
		{"Tags", []any{tag("a"), tag("a")}, []any{tag("a"), tag("b")}, false},
		{"Tags", []any{tag("a")}, nil, false},
	} {
		if got := Same("AWS::SQS::Queue", c.property, c.a, c.b); got != c.same {
			t.Errorf("%s: %v and %v: %t", c.property, c.a, c.b, got)
		}
	}
}

func TestErrorsAreKindsByTheirCodes(t *testing.T) {
	own := Errors{"Odd": provider.KindConflict, "AccessDenied": provider.KindThrottled}
	for _, c := range []struct {
		err  error
		want provider.Kind
	}{
		{coded("Odd"), provider.KindConflict},
		{coded("AccessDenied"), provider.KindThrottled},
		{coded("InvalidVpcID.NotFound"), provider.KindNotFound},
		{coded("NeverSeen"), provider.KindFailed},
		{errors.New("connection reset"), provider.KindUnavailable},
		{&smithy.SerializationError{Err: errors.New("x")}, provider.KindInvalid},
		{NotFound("thing", "t"), provider.KindNotFound},
		{&smithy.GenericAPIError{Code: "InvalidParameterValueException", Message: "The role defined for the function cannot be assumed by Lambda."}, provider.KindPropagation},
	} {
		if got := own.wrap(c.err).Kind; got != c.want {
			t.Errorf("%v is %s, want %s", c.err, got, c.want)
		}
	}
}

func TestTagDiffLeavesAWSsTagsAlone(t *testing.T) {
	add, gone := tagDiff(map[string]string{"a": "1", "b": "2", "aws:x": "3"}, map[string]string{"a": "1", "b": "3", "c": "4", "aws:y": "5"})
	if diff := cmp.Diff(map[string]string{"b": "3", "c": "4"}, add); diff != "" || gone != nil {
		t.Errorf("%s, %v", diff, gone)
	}
	if _, gone := tagDiff(map[string]string{"b": "", "a": ""}, nil); !cmp.Equal(gone, []string{"a", "b"}) {
		t.Errorf("gone: %v", gone)
	}
}
