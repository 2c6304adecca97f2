package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
)

// parameters are SSM's, by name.
type parameters map[string]string

func (p parameters) GetParameter(_ context.Context, in *ssm.GetParameterInput, _ ...func(*ssm.Options)) (*ssm.GetParameterOutput, error) {
	v, ok := p[*in.Name]
	if !ok {
		return nil, &types.ParameterNotFound{}
	}
	return &ssm.GetParameterOutput{Parameter: &types.Parameter{Value: aws.String(v)}}, nil
}

func described() Descriptor {
	return Descriptor{
		Version: 1, Release: "v1.2.3", StateMachine: "arn:aws:states:eu-west-1:111122223333:stateMachine:slipway-run", Table: "runs",
		UploadsBucket: "uploads-bucket", Region: "eu-west-1", Account: "111122223333", StateBucket: "acme-state",
		VaultKey: "arn:aws:kms:eu-west-1:111122223333:key/1", Janitor: "arn:aws:lambda:eu-west-1:111122223333:function:slipway-janitor",
	}
}

func TestADescriptorIsReadFromItsParameter(t *testing.T) {
	want := described()
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	store := parameters{"/slipway/control-plane": string(b), "/other/control-plane": strings.Replace(string(b), "{", `{"later":[1],`, 1)}
	for _, name := range []string{"", "slipway", "other"} {
		if got, err := ReadDescriptor(t.Context(), store, name); err != nil || got != want {
			t.Errorf("%q: %+v: %v", name, got, err)
		}
	}
	if got := want.Execution("a"); got != "arn:aws:states:eu-west-1:111122223333:execution:slipway-run:a" {
		t.Errorf("the execution is %s", got)
	}
	if _, err := ReadDescriptor(t.Context(), store, "absent"); !errors.Is(err, ErrNoPlane) || !strings.Contains(err.Error(), "/absent/control-plane") {
		t.Errorf("the error is %v", err)
	}
	if _, err := ReadDescriptor(t.Context(), store, "../x"); err == nil || errors.Is(err, ErrNoPlane) {
		t.Errorf("the error is %v", err)
	}
}

func TestADescriptorThatCannotBeRightIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Descriptor)
		want   string
	}{
		"a newer version":      {func(d *Descriptor) { d.Version = 2 }, "upgrade the command line"},
		"no version":           {func(d *Descriptor) { d.Version = 0 }, "version"},
		"parts missing":        {func(d *Descriptor) { d.Table, d.UploadsBucket = "", "" }, "table, uploadsBucket"},
		"another account":      {func(d *Descriptor) { d.Account = "444455556666" }, "444455556666"},
		"another region":       {func(d *Descriptor) { d.Region = "us-east-1" }, "us-east-1"},
		"not a state machine":  {func(d *Descriptor) { d.StateMachine = "arn:aws:states:eu-west-1:111122223333:activity:x" }, "stateMachineArn"},
		"not an ARN":           {func(d *Descriptor) { d.StateMachine = "slipway-run" }, "stateMachineArn"},
		"no state bucket":      {func(d *Descriptor) { d.StateBucket = "" }, "stateBucket"},
		"another partition":    {func(d *Descriptor) { d.StateMachine = strings.Replace(d.StateMachine, "arn:aws:", "arn:aws-cn:", 1) }, ""},
		"no key of the vault":  {func(d *Descriptor) { d.VaultKey = "" }, ""},
		"no region of buckets": {func(d *Descriptor) { d.StateBucketRegion = "us-east-1" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := described()
			c.change(&d)
			b, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			_, err = ParseDescriptor(b)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
		})
	}
	if _, err := ParseDescriptor([]byte("[]")); err == nil {
		t.Error("a list is taken for a descriptor")
	}
}
