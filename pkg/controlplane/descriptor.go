package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
)

const (
	// DescriptorVersion is the version of descriptors that this release writes, and the newest that it reads.
	DescriptorVersion = 1
	// DefaultName is the name of a control plane that was given none: what the names of its parts begin with.
	DefaultName = "slipway"
)

// Descriptor tells a command where the parts of a control plane are. The control plane's own stack keeps it in an
// SSM parameter (DescriptorParameter); it holds no secret. Members may be added within a version: unknown ones are
// ignored.
type Descriptor struct {
	Version int `json:"version"`
	// Release is the release of Slipway whose template the control plane was deployed from.
	Release string `json:"release"`
	// StateMachine is the ARN of the state machine that carries runs.
	StateMachine string `json:"stateMachineArn"`
	// Table is the name of the run log's table.
	Table string `json:"table"`
	// UploadsBucket is the name of the bucket that assemblies are uploaded to (uploads/) and dropped into (inbox/).
	UploadsBucket string `json:"uploadsBucket"`
	Region        string `json:"region"`
	Account       string `json:"account"`
	// StateBucket is the name of the bucket that holds the records of stacks, which callers cannot read.
	StateBucket string `json:"stateBucket"`
	// StateBucketRegion is its region; "" is Region.
	StateBucketRegion string `json:"stateBucketRegion,omitempty"`
	// VaultKey is the ARN of the KMS key that the secrets of runs are encrypted with.
	VaultKey string `json:"vaultKey"`
	// Janitor is the ARN of the function that settles dead runs.
	Janitor string `json:"janitor"`
}

// planeName is what the template allows for its NamePrefix.
var planeName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`)

// DescriptorParameter is the name of the SSM parameter that holds the descriptor of the control plane with a name.
func DescriptorParameter(plane string) string { return "/" + plane + "/control-plane" }

// ErrNoPlane is in the chain of the error where an account has no control plane of a name in a region.
var ErrNoPlane = errors.New("there is no such control plane")

// ParameterReader is the part of SSM's client that ReadDescriptor calls.
type ParameterReader interface {
	GetParameter(ctx context.Context, in *ssm.GetParameterInput, opts ...func(*ssm.Options)) (*ssm.GetParameterOutput, error)
}

// ReadDescriptor reads the descriptor of the control plane with a name ("" is DefaultName) from the client's
// account and region. Where there is none, the error's chain has ErrNoPlane.
func ReadDescriptor(ctx context.Context, client ParameterReader, plane string) (Descriptor, error) {
	if plane == "" {
		plane = DefaultName
	}
	if !planeName.MatchString(plane) {
		return Descriptor{}, fmt.Errorf("%q cannot be the name of a control plane: names have up to 31 lower-case letters, digits and hyphens and begin with a letter", plane)
	}
	name := DescriptorParameter(plane)
	out, err := client.GetParameter(ctx, &ssm.GetParameterInput{Name: &name})
	var absent *types.ParameterNotFound
	switch {
	case errors.As(err, &absent):
		return Descriptor{}, fmt.Errorf("control plane %q: %w: SSM has no parameter %s in this account and region", plane, ErrNoPlane, name)
	case err != nil:
		return Descriptor{}, fmt.Errorf("reading SSM parameter %s of control plane %q: %w", name, plane, err)
	case out.Parameter == nil:
		return Descriptor{}, fmt.Errorf("reading SSM parameter %s of control plane %q: the answer has none", name, plane)
	}
	d, err := ParseDescriptor([]byte(aws.ToString(out.Parameter.Value)))
	if err != nil {
		return Descriptor{}, fmt.Errorf("SSM parameter %s of control plane %q: %w", name, plane, err)
	}
	return d, nil
}

// ParseDescriptor parses and checks a descriptor. A newer version is refused: what it means is not known.
func ParseDescriptor(b []byte) (Descriptor, error) {
	var d Descriptor
	if err := json.Unmarshal(b, &d); err != nil {
		return Descriptor{}, fmt.Errorf("it is not a control plane's descriptor: %w", err)
	}
	if d.Version > DescriptorVersion {
		return Descriptor{}, fmt.Errorf("its version is %d and this release of Slipway knows up to %d: upgrade the command line", d.Version, DescriptorVersion)
	}
	var missing []string
	for _, m := range []struct {
		name string
		set  bool
	}{
		{"version", d.Version > 0}, {"stateMachineArn", d.StateMachine != ""}, {"table", d.Table != ""}, {"uploadsBucket", d.UploadsBucket != ""},
		{"region", d.Region != ""}, {"account", d.Account != ""}, {"stateBucket", d.StateBucket != ""},
	} {
		if !m.set {
			missing = append(missing, m.name)
		}
	}
	if len(missing) > 0 {
		return Descriptor{}, fmt.Errorf("it lacks %s: deploy the control plane again", strings.Join(missing, ", "))
	}
	machine, err := arn.Parse(d.StateMachine)
	if err != nil || machine.Service != "states" || machine.AccountID != d.Account || machine.Region != d.Region || !strings.HasPrefix(machine.Resource, "stateMachine:") {
		return Descriptor{}, fmt.Errorf("its stateMachineArn is not the ARN of a state machine of account %s in %s", d.Account, d.Region)
	}
	return d, nil
}

// Execution is the ARN of an execution of the run state machine.
func (d Descriptor) Execution(name string) string {
	return strings.Replace(d.StateMachine, ":stateMachine:", ":execution:", 1) + ":" + name
}

// Partition is the partition of the control plane's account: "aws", "aws-cn", "aws-us-gov", ….
func (d Descriptor) Partition() string {
	machine, err := arn.Parse(d.StateMachine)
	if err != nil {
		return "aws"
	}
	return machine.Partition
}
