//go:build emulators

package endtoend

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	install "github.com/slipway-cdk/slipway/pkg/bootstrap"
	"github.com/slipway-cdk/slipway/pkg/controlplane"
	"github.com/slipway-cdk/slipway/pkg/objectstore/s3"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// deployer is the IAM policy of the execution role.
const deployer = "arn:aws:iam::aws:policy/PowerUserAccess"

// installing are the arguments that install a control plane in this suite: each has a state bucket of its own.
func installing(t *testing.T, plane string) []string {
	t.Helper()
	return []string{
		"bootstrap", "--assembly", need(t, planeVariable), "--execution-policy", deployer, "--state-bucket", "slipway-" + plane,
		"--parameter", "TableDeletionProtection=false",
	}
}

// bootstrap installs a control plane as users do, and reads where its parts are as the command line does. The bucket that
// CDK's own bootstrap makes is for the assets of the stacks that it will deploy.
func bootstrap(t *testing.T, cfg aws.Config, plane string) (controlplane.Descriptor, error) {
	t.Helper()
	assets := "cdk-hnb659fds-assets-" + account + "-" + region
	var owned *s3types.BucketAlreadyOwnedByYou
	if _, err := s3.NewClient(cfg, "").CreateBucket(t.Context(), &sdk.CreateBucketInput{Bucket: &assets}); err != nil && !errors.As(err, &owned) {
		return controlplane.Descriptor{}, err
	}
	if _, err := changes(t, cfg, plane, runlog.ResultSucceeded, installing(t, plane)...); err != nil {
		return controlplane.Descriptor{}, err
	}
	return controlplane.ReadDescriptor(t.Context(), ssm.NewFromConfig(cfg), plane)
}

func TestAControlPlaneIsInstalledLookedAtAndRemoved(t *testing.T) {
	shared := newWorld(t)
	plane := "b" + randomHex(4)
	d, err := bootstrap(t, shared.cfg, plane)
	if err != nil {
		t.Fatal(err)
	}
	w := see(t, shared.cfg, d, plane)
	stacks := []string{install.StackName(plane), install.RoleStackName(plane)}
	records := map[string]*state.Record{}
	for _, stack := range stacks {
		if records[stack] = w.record(stack); records[stack] == nil || len(records[stack].Resources) == 0 {
			t.Fatalf("stack %s has no record", stack)
		}
		w.unlocked(stack)
	}

	again, err := changes(t, w.cfg, plane, runlog.ResultSucceeded, installing(t, plane)...)
	if err != nil {
		t.Fatal(err)
	}
	if c := again.counts(); !nothing(c) || c.Unchanged != len(records[stacks[0]].Resources)+len(records[stacks[1]].Resources) {
		t.Errorf("the second bootstrap is not without changes: %+v", c)
	}
	w.examined(plane)

	if _, err := changes(t, w.cfg, plane, runlog.ResultSucceeded, append(installing(t, plane), "--destroy")...); err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, stack := range stacks {
		if w.record(stack) != nil {
			t.Errorf("the record of %s is left", stack)
		}
		w.unlocked(stack)
		for id, r := range records[stack].Resources {
			there := w.there(stack, id, r)
			if retained := r.DeletionPolicy == "Retain" || r.DeletionPolicy == "RetainExceptOnCreate"; there != retained {
				t.Errorf("%s of %s (%s) is there: %t, and its deletion policy is %q", id, stack, r.ResourceType, there, r.DeletionPolicy)
			} else if retained {
				kept++
			}
		}
	}
	if kept == 0 {
		t.Error("nothing holds data")
	}
	if _, err := controlplane.ReadDescriptor(t.Context(), ssm.NewFromConfig(w.cfg), plane); err == nil {
		t.Error("the control plane is still found")
	}
}

// check is one check of doctor.
type check struct{ Name, Verdict, Detail string }

// resourceChecks is what doctor says of the control plane's resources.
const resourceChecks = "control plane: resources"

// doctor looks at the control plane. It must not fail.
func (w *world) doctor(plane string) (checks []check) {
	w.Helper()
	for range 3 { // a connection that ends in the midst of the answer is nobody's word
		out, told, code := slipway(w.T, w.cfg, plane, "doctor", "--json", "--state-bucket", w.descriptor.StateBucket)
		var says struct {
			OK     bool
			Checks []check
		}
		if err := json.Unmarshal(out, &says); err != nil {
			w.Fatalf("doctor has ended with %d and printed %q: %v\n%s", code, out, err, told)
		}
		if code != 0 || !says.OK {
			w.Errorf("doctor has ended with %d: %s", code, out)
		}
		checks = says.Checks
		if !slices.ContainsFunc(checks, func(c check) bool { return strings.Contains(c.Detail, "could not be read") }) {
			break
		}
	}
	return checks
}

// examined has doctor look at a control plane that was installed a moment ago, and at one of whose roles somebody has
// changed what it may do.
func (w *world) examined(plane string) {
	w.Helper()
	seen := map[string]string{}
	for _, c := range w.doctor(plane) {
		seen[c.Name] = c.Verdict
		if c.Verdict == "ok" {
			continue
		}
		w.Logf("doctor: %s: %s: %s", c.Name, c.Verdict, c.Detail)
		if _, list, _ := strings.Cut(c.Detail, "shape: "); c.Name == resourceChecks && c.Verdict == "unknown" &&
			!slices.ContainsFunc(strings.Split(list, ", "), func(property string) bool { return !strings.HasSuffix(property, "Machine.TracingConfiguration") }) {
			seen[c.Name] = "ok" // the emulator forgets the tracing of state machines, AWS does not
		}
	}
	for _, name := range []string{"credentials", "state bucket", "control plane", "release", resourceChecks} {
		if seen[name] != "ok" {
			w.Errorf("doctor says of %s: %q", name, seen[name])
		}
	}

	role := w.record(install.StackName(plane)).Resources["TriggerRole"].PhysicalID
	everything := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}`
	if _, err := iam.NewFromConfig(w.cfg).PutRolePolicy(w.Context(), &iam.PutRolePolicyInput{
		RoleName: &role, PolicyName: aws.String("own"), PolicyDocument: &everything,
	}); err != nil {
		w.Fatal(err)
	}
	if !slices.ContainsFunc(w.doctor(plane), func(c check) bool {
		return c.Name == resourceChecks && c.Verdict == "warning" && strings.HasPrefix(c.Detail, "TriggerRole (AWS::IAM::Role): Policies")
	}) {
		w.Error("doctor does not see that a role may do more than it was deployed with")
	}
}

// there reports whether a resource of a record exists.
func (w *world) there(stack, id string, r *state.Resource) bool {
	w.Helper()
	p, _, err := w.plane.Engine.Providers.For(r.ResourceType, provider.Route(r.ProvisionedBy), nil)
	if err != nil {
		w.Fatal(err)
	}
	for range 3 { // a connection that ends in the midst of the answer is nobody's word
		_, err = p.Read(w.Context(), provider.Request{
			Stack: stack, Account: w.descriptor.Account, Region: region, LogicalID: id, Type: r.ResourceType, PhysicalID: r.PhysicalID,
			Previous: r.Properties, Attributes: r.Attributes,
		})
		if err == nil || provider.IsNotFound(err) {
			break
		}
	}
	if err != nil && !provider.IsNotFound(err) {
		w.Errorf("reading %s of %s: %v", id, stack, err)
	}
	return err == nil
}
