package bootstrap

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/admission"
	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/localdb"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	locals "github.com/slipway-cdk/slipway/pkg/objectstore/local"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/template"
)

func bucket(t *testing.T) objectstore.Store {
	t.Helper()
	db, err := localdb.Open(filepath.Join(t.TempDir(), "objects.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	store, err := locals.New(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// assemblyIn writes an assembly with one stack into a directory.
func assemblyIn(t *testing.T, dir, stack string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{
		"manifest.json": `{"version":"36.0.0","artifacts":{"` + stack + `":{"type":"aws:cloudformation:stack",
			"environment":"aws://unknown-account/unknown-region","properties":{"templateFile":"t.template.json"}}}}`,
		"t.template.json": `{"Resources":{"Q":{"Type":"AWS::SQS::Queue"}}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheAssemblyIsTheNamedOneOrTheReleasesOrTheSources(t *testing.T) {
	root := t.TempDir()
	program, work, named := filepath.Join(root, "bin", "slipway"), filepath.Join(root, "src"), filepath.Join(root, "named")
	if _, err := FindAssembly("", program, work); err == nil || !strings.Contains(err.Error(), "not here") {
		t.Errorf("without an assembly the error is %v", err)
	}
	assemblyIn(t, filepath.Join(work, "infra", "cdk.out"), stackName)
	if asm, err := FindAssembly("", program, work); err != nil || !strings.Contains(asm.Dir, "src") {
		t.Errorf("the sources' is not found: %v", err)
	}
	assemblyIn(t, filepath.Join(root, "bin", "control-plane"), stackName)
	if asm, err := FindAssembly("", program, work); err != nil || !strings.Contains(asm.Dir, "control-plane") {
		t.Errorf("the release's does not win: %v", err)
	}
	assemblyIn(t, named, "Another")
	if _, err := FindAssembly(named, program, work); err == nil || !strings.Contains(err.Error(), "not the assembly of the control plane") {
		t.Errorf("another assembly is taken: %v", err)
	}
	if _, err := FindAssembly(filepath.Join(root, "absent"), program, work); err == nil {
		t.Error("a named assembly that is not there is passed over")
	}
}

func TestFunctionsAreTakenFromTheOwnBucket(t *testing.T) {
	const theirs = "cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}"
	s := &assembly.Stack{
		Template: []byte(`{"Code":{"S3Bucket":{"Fn::Sub":"` + theirs + `"},"S3Key":"k.zip"},"Policy":"arn:aws:s3:::cdk-hnb659fds-assets-*"}`),
		Assets:   []assembly.Asset{{Destinations: []assembly.Destination{{Bucket: theirs, Key: "k.zip", AssumeRoleARN: "arn:role"}}}},
	}
	Redirect(s, "ours")
	d := s.Assets[0].Destinations[0]
	if d.Bucket != "ours" || d.Key != "k.zip" || d.AssumeRoleARN != "" {
		t.Errorf("the destination is %+v", d)
	}
	if got := string(s.Template); got != `{"Code":{"S3Bucket":{"Fn::Sub":"ours"},"S3Key":"k.zip"},"Policy":"arn:aws:s3:::cdk-hnb659fds-assets-*"}` {
		t.Errorf("the template is %s", got)
	}
}

func TestTheCostAtRestIsThatOfWhatIsChargedByTheMonth(t *testing.T) {
	parts, err := Parts([]byte(`{"Resources":{"A":{"Type":"AWS::CloudWatch::Alarm"},"B":{"Type":"AWS::CloudWatch::Alarm"},
		"K":{"Type":"AWS::KMS::Key"},"Q":{"Type":"AWS::SQS::Queue"}}}`))
	if err != nil || len(parts) != 3 || parts[0].Type != "AWS::KMS::Key" || parts[1].Count != 2 {
		t.Fatalf("%+v, %v", parts, err)
	}
	if sum := Monthly(parts); sum < 1.19 || sum > 1.21 {
		t.Errorf("the sum is %f", sum)
	}
}

func TestTheExecutionRoleTrustsTheFunctionsAndHasTheGivenPolicies(t *testing.T) {
	for name, ok := range map[string]bool{
		"arn:aws:iam::111122223333:policy/deploy": true, "arn:aws-cn:iam::aws:policy/PowerUserAccess": true,
		"arn:aws:iam::111122223333:role/deploy": false, "AdministratorAccess": false, "": false,
	} {
		if err := CheckPolicies([]string{name}); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
	s, err := RoleStack("Plane", "acme", "eu-west-1", []string{"arn:1", "arn:2"})
	if err != nil {
		t.Fatal(err)
	}
	if s.Parameters[PoliciesParameter] != "arn:1,arn:2" || s.DependsOn[0] != "Plane" || s.Name != "SlipwayExecutionRole-acme" {
		t.Errorf("the stack is %+v", s)
	}
	tmpl, err := template.Parse(s.Template)
	if err != nil || tmpl.Resources["Role"] == nil {
		t.Fatalf("the template can't be read: %v", err)
	}
	for _, want := range []string{"slipway-execution-acme-eu-west-1", "PublisherRoleArn", "sts:TagSession", `"Ref":"ManagedPolicyArns"`} {
		if !strings.Contains(string(s.Template), want) {
			t.Errorf("the template lacks %s", want)
		}
	}
	if s, err = RoleStack("Plane", "slipway", "eu-west-1", nil); err != nil || s.Parameters != nil || s.Name != "SlipwayExecutionRole" {
		t.Errorf("without policies it does not keep those it has: %+v, %v", s, err)
	}
}

func TestThePolicyOfSomebodyElseIsLeftAsItIs(t *testing.T) {
	b := bucket(t)
	const role = "arn:aws:iam::111122223333:role/slipway-execution-slipway-eu-west-1"
	for range 2 {
		if stands, err := WritePolicy(t.Context(), b, role); err != nil || !stands {
			t.Fatalf("%t, %v", stands, err)
		}
	}
	p, err := admission.ReadPolicy(t.Context(), b)
	if err != nil || len(p.Rules) != 1 || p.Rules[0].Roles[0].ARN != role {
		t.Errorf("the policy is %+v, %v", p, err)
	}
	if _, err := b.Put(t.Context(), admission.PolicyKey, []byte(`{"version":1,"rules":[]}`), objectstore.Condition{}); err != nil {
		t.Fatal(err)
	}
	if stands, err := WritePolicy(t.Context(), b, role); err != nil || stands {
		t.Errorf("%t, %v", stands, err)
	}
}

func TestTheMarkerOfCdkdNamesTheBucketForAssets(t *testing.T) {
	b := bucket(t)
	if name, err := MarkedBucket(t.Context(), b, "eu-west-1"); err != nil || name != "" {
		t.Errorf("%q, %v", name, err)
	}
	for body, want := range map[string]string{
		`{"assetBucket":"a","containerRepo":"r","assetSupportVersion":1,"createdAt":"2026-01-01T00:00:00Z"}`: "a",
		`{"assetBucket":"a","containerRepo":"r","assetSupportVersion":2}`:                                    "",
		`{"assetBucket":"a","assetSupportVersion":1}`:                                                        "",
		`{`: "",
	} {
		if _, err := b.Put(t.Context(), "cdkd-bootstrap/eu-west-1.json", []byte(body), objectstore.Condition{}); err != nil {
			t.Fatal(err)
		}
		if name, err := MarkedBucket(t.Context(), b, "eu-west-1"); name != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", body, name, err)
		}
	}
}

func TestWhatARemovedControlPlaneHasLeftIsTakenBackByTheNext(t *testing.T) {
	ctx := t.Context()
	states := &state.Store{Objects: bucket(t)}
	now := time.Unix(1_900_000_000, 0)
	if err := errors.Join(Remember(ctx, states, "P", "eu-west-1", now), Recall(ctx, states, "P", "eu-west-1")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := states.Load(ctx, "P", "eu-west-1"); !state.IsNotFound(err) {
		t.Fatalf("something came of nothing: %v", err)
	}
	rec := &state.Record{StackName: "P", Region: "eu-west-1", Outputs: map[string]any{}, Resources: map[string]*state.Resource{
		"Table": {PhysicalID: "t", ResourceType: "AWS::DynamoDB::Table", DeletionPolicy: "Retain", Properties: map[string]any{}, Attributes: map[string]any{}},
		"Queue": {PhysicalID: "q", ResourceType: "AWS::SQS::Queue", Properties: map[string]any{}, Attributes: map[string]any{}},
	}}
	etag, err := states.Save(ctx, rec, "")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Remember(ctx, states, "P", "eu-west-1", now); err != nil {
			t.Fatal(err)
		}
	}
	// While the stack stands there is nothing to be taken back.
	if err := Recall(ctx, states, "P", "eu-west-1"); err != nil {
		t.Fatal(err)
	}
	if got, _, err := states.Load(ctx, "P", "eu-west-1"); err != nil || len(got.Resources) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := states.Objects.Delete(ctx, states.StateKey("P", "eu-west-1"), objectstore.Condition{IfMatch: etag}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(Remember(ctx, states, "P", "eu-west-1", now), Recall(ctx, states, "P", "eu-west-1")); err != nil {
		t.Fatal(err)
	}
	got, _, err := states.Load(ctx, "P", "eu-west-1")
	if err != nil || len(got.Resources) != 0 || len(got.Orphans) != 1 || got.Orphans[0].LogicalID != "Table" || got.Orphans[0].Resource.PhysicalID != "t" {
		t.Errorf("taken back is %+v, %v", got, err)
	}
}

func TestOtherControlPlanesOfARegionAreFoundByTheirRecords(t *testing.T) {
	ctx := t.Context()
	states := &state.Store{Objects: bucket(t)}
	for _, r := range []state.Ref{
		{Stack: "SlipwayControlPlane", Region: "eu-west-1"}, {Stack: "SlipwayControlPlane-two", Region: "eu-west-1"},
		{Stack: "SlipwayControlPlane-three", Region: "us-east-1"}, {Stack: "SlipwayExecutionRole-two", Region: "eu-west-1"},
		{Stack: "SlipwayControlPlaneWatch", Region: "eu-west-1"}, {Stack: "SlipwayControlPlane-", Region: "eu-west-1"},
	} {
		rec := &state.Record{StackName: r.Stack, Region: r.Region, Outputs: map[string]any{}, Resources: map[string]*state.Resource{}}
		if _, err := states.Save(ctx, rec, ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		plane, region string
		want          []string
	}{
		{"slipway", "eu-west-1", []string{"two"}},
		{"two", "eu-west-1", []string{"slipway"}},
		{"gone", "eu-west-1", []string{"slipway", "two"}},
		{"three", "us-east-1", nil},
		{"slipway", "ap-south-1", nil},
	} {
		if got, err := Others(ctx, states, c.plane, c.region); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("beside %s in %s are %v, %v; want %v", c.plane, c.region, got, err, c.want)
		}
	}
	for _, c := range []struct {
		plane, region string
		ok            bool
	}{{"slipway", "eu-west-1", true}, {"slipway", "us-east-1", false}, {"three", "eu-west-1", false}, {"three", "us-east-1", true}, {"new", "us-east-1", true}} {
		if err := CheckRegion(ctx, states, c.plane, c.region); (err == nil) != c.ok {
			t.Errorf("%s in %s: %v", c.plane, c.region, err)
		}
	}
}
