//go:build emulators

package oracle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// formation is a stack of the emulator's CloudFormation.
type formation struct {
	client *cloudformation.Client
	name   string
	id     string
}

func newFormation(t *testing.T, name string) *formation {
	t.Helper()
	return &formation{client: cloudformation.NewFromConfig(clients(t)), name: "theirs-" + name}
}

// deploy creates or updates the stack and waits for the end.
func (f *formation) deploy(t *testing.T, stage string, template map[string]any) error {
	t.Helper()
	body := text(template)
	capabilities := []types.Capability{types.CapabilityCapabilityNamedIam, types.CapabilityCapabilityAutoExpand}
	if stage == stageUpdate {
		if _, err := f.client.UpdateStack(t.Context(), &cloudformation.UpdateStackInput{StackName: &f.name, TemplateBody: &body, Capabilities: capabilities}); err != nil {
			return err
		}
		return f.settle(t, types.StackStatusUpdateComplete)
	}
	out, err := f.client.CreateStack(t.Context(), &cloudformation.CreateStackInput{StackName: &f.name, TemplateBody: &body, Capabilities: capabilities})
	if err != nil {
		return err
	}
	f.id = aws.ToString(out.StackId)
	return f.settle(t, types.StackStatusCreateComplete)
}

func (f *formation) delete(t *testing.T) error {
	t.Helper()
	if _, err := f.client.DeleteStack(t.Context(), &cloudformation.DeleteStackInput{StackName: &f.id}); err != nil {
		return err
	}
	return f.settle(t, types.StackStatusDeleteComplete)
}

// settle asks until the stack has the status, or another one that it does not leave by itself.
func (f *formation) settle(t *testing.T, want types.StackStatus) error {
	t.Helper()
	for range 600 {
		out, err := f.client.DescribeStacks(t.Context(), &cloudformation.DescribeStacksInput{StackName: &f.id})
		if err != nil || len(out.Stacks) == 0 {
			return fmt.Errorf("describing the stack: %w", err)
		}
		s := out.Stacks[0]
		switch {
		case s.StackStatus == want:
			return nil
		case !strings.HasSuffix(string(s.StackStatus), "_IN_PROGRESS"):
			return fmt.Errorf("the stack is %s: %s %s", s.StackStatus, aws.ToString(s.StackStatusReason), f.reasons(t))
		}
		time.Sleep(50 * time.Millisecond) // the emulator works on its own time
	}
	return fmt.Errorf("the stack is not %s in half a minute", want)
}

// reasons are why resources have failed.
func (f *formation) reasons(t *testing.T) string {
	t.Helper()
	out, err := f.client.DescribeStackEvents(t.Context(), &cloudformation.DescribeStackEventsInput{StackName: &f.id})
	if err != nil {
		return err.Error()
	}
	var said []string
	for _, e := range out.StackEvents {
		if strings.HasSuffix(string(e.ResourceStatus), "_FAILED") {
			said = append(said, aws.ToString(e.LogicalResourceId)+": "+aws.ToString(e.ResourceStatusReason))
		}
	}
	return strings.Join(said, "; ")
}

// look reads what the stack has left through the services, as our own side is read. What a reading needs to know of a resource
// beside its id is taken from our record, with the stack's own names in it.
func (f *formation) look(t *testing.T, e *engine, record recorded, ours Stack) (Stack, error) {
	t.Helper()
	described, err := f.client.DescribeStackResources(t.Context(), &cloudformation.DescribeStackResourcesInput{StackName: &f.id})
	if err != nil {
		return Stack{}, err
	}
	ids := map[string]string{}
	for _, r := range described.StackResources {
		ids[aws.ToString(r.LogicalResourceId)] = aws.ToString(r.PhysicalResourceId)
	}
	s := Stack{Resources: map[string]Resource{}, Outputs: map[string]string{}, Order: ours.Order, Given: ours.Given}
	plain, own := ours.atoms(), Atoms{}
	for _, logicalID := range ordered(record) {
		have := record.resources[logicalID]
		id, ok := ids[logicalID]
		if !ok {
			continue // it differs by not being there
		}
		properties, _ := own.Own(plain.Plain(have.Properties)).(map[string]any)
		r, err := e.read(t, have.ResourceType, addressed(have.ResourceType, id, properties), properties)
		if err != nil {
			return s, fmt.Errorf("%s (%s): %w", logicalID, id, err)
		}
		r.Ref = id
		s.Resources[logicalID] = r
		own.Add(logicalID, r, s.Given)
		delete(ids, logicalID)
	}
	for logicalID, id := range ids {
		s.Resources[logicalID] = Resource{ID: id, Ref: id}
	}
	out, err := f.client.DescribeStacks(t.Context(), &cloudformation.DescribeStacksInput{StackName: &f.id})
	if err != nil {
		return s, err
	}
	for _, o := range out.Stacks[0].Outputs {
		s.Outputs[aws.ToString(o.OutputKey)] = aws.ToString(o.OutputValue)
	}
	return s, nil
}

// addressed is the id by which a provider reads what the emulator's CloudFormation calls otherwise than AWS's: the difference
// itself is compared.
func addressed(typeName, id string, properties map[string]any) string {
	switch typeName {
	case "AWS::IAM::InstanceProfile":
		return last(id)
	case "AWS::EC2::VPCGatewayAttachment":
		return direct.Text(properties["InternetGatewayId"]) + direct.Text(properties["VpnGatewayId"]) + "|" + last(id)
	case "AWS::Lambda::Url":
		return direct.Text(properties["TargetFunctionArn"])
	case "AWS::Events::Rule":
		bus := strings.TrimPrefix(direct.Text(properties["EventBusName"])+"/", "/")
		return "arn:aws:events:" + region + ":" + account + ":rule/" + bus + last(id)
	case "AWS::S3::BucketPolicy":
		return direct.Text(properties["Bucket"])
	case "AWS::ApiGatewayV2::Integration", "AWS::ApiGatewayV2::Route", "AWS::ApiGatewayV2::Stage":
		return last(id)
	case "AWS::IAM::Policy":
		return direct.Text(properties["PolicyName"])
	}
	return id
}

// ordered lists the resources of a record, each after what it depends on.
func ordered(r recorded) []string {
	var out []string
	var visit func(id string)
	visit = func(id string) {
		if r.resources[id] == nil || slices.Contains(out, id) {
			return
		}
		for _, d := range r.resources[id].Dependencies {
			visit(d)
		}
		out = append(out, id)
	}
	for _, id := range union(r.resources, nil) {
		visit(id)
	}
	return out
}
