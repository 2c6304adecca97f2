//go:build emulators

package oracle

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/asset"
	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/emulators"
	"github.com/slipway-cdk/slipway/pkg/provider/custom"
)

// TestProviderFramework deploys an app of CDK's own provider framework: its functions run in the emulator's Lambda, its waiter in
// the emulator's Step Functions, and what they answer through the response URL meets our provider of custom resources.
func TestProviderFramework(t *testing.T) {
	emulators.LeaveOut(t, []emulators.Capability{{
		Name: "Lambda: Node.js functions run", Cases: []string{"TestProviderFramework"},
		Probe: func(context.Context) (string, error) {
			return emulators.Unless(os.Getenv("SLIPWAY_TEST_EMULATOR") == "ministack", "it runs them in Docker only"), nil
		},
	}})(t)
	f := newFramework(t)
	one, two := object{"Name": "one", "Color": "red"}, object{"Name": "two", "Color": "blue"}

	// Both providers make their things; the outputs come from their answers.
	f.deploy(t, one)
	f.expect(t, map[string]string{"/things/quick/one": "red 0", "/things/slow/one": "red 3"})
	f.says(t, map[string]string{
		"QuickId": "/things/quick/one", "QuickColor": "red", "QuickRequest": "Create",
		"SlowId": "/things/slow/one", "SlowColor": "red", "SlowRequest": "Create",
	})
	f.deploy(t, object{"Name": "one", "Color": "blue"})
	f.expect(t, map[string]string{"/things/quick/one": "blue 0", "/things/slow/one": "blue 3"})
	f.says(t, map[string]string{"QuickColor": "blue", "QuickRequest": "Update", "SlowColor": "blue", "SlowRequest": "Update"})

	// What the handler refuses reaches the user with its reason. Where it was a creation, the framework lets the deletion of what
	// was never made pass.
	f.fails(t, object{"Name": "one", "Color": "red", "Do": "refuse"}, "there is no such color")
	f.expect(t, map[string]string{"/things/quick/one": "blue 0", "/things/slow/one": "blue 3"})
	f.fails(t, object{"Name": "one", "Color": "blue", "More": "refuse"}, "there is no such color")
	f.expect(t, map[string]string{"/things/quick/one": "blue 0", "/things/slow/one": "blue 3"})
	// One that is never complete ends with the framework's own time, and the rollback updates it back.
	f.fails(t, object{"Name": "one", "Color": "red", "Do": "hang"}, "Operation timed out")
	f.expect(t, map[string]string{"/things/quick/one": "blue 0", "/things/slow/one": "blue 3"})

	// An answer with another id replaces: the framework is asked to delete the old one.
	f.deploy(t, two)
	f.expect(t, map[string]string{"/things/quick/two": "blue 0", "/things/slow/two": "blue 3"})
	f.says(t, map[string]string{"QuickId": "/things/quick/two", "SlowId": "/things/slow/two"})
	// NoEcho: the record does not show the attributes.
	f.deploy(t, object{"Name": "two", "Color": "hidden", "Secret": "true"})
	for _, id := range []string{"Quick", "Slow"} {
		if got := text(f.record.resources[id].Attributes); strings.Contains(got, "hidden") || !strings.Contains(got, "***") {
			t.Errorf("the record of %s shows what was concealed: %s", id, got)
		}
	}
	if err := f.destroy(t, f.stack); err != nil {
		t.Fatal(err)
	}
	f.expect(t, nil)
}

type object = map[string]any

// framework is the app on the engine.
type framework struct {
	*engine
	stack    string
	template []byte
	ssm      *ssm.Client
	record   recorded
}

func newFramework(t *testing.T) *framework {
	t.Helper()
	cfg, e := clients(t), newEngine(t)
	inBuckets := func(o *s3.Options) { o.UsePathStyle = true }
	buckets := s3.NewFromConfig(cfg, inBuckets)
	// A presigned URL is checked against its credentials, also by an emulator that takes any others.
	cfg.Credentials = credentials.NewStaticCredentialsProvider("test", "test", "")
	signing := s3.NewFromConfig(cfg, inBuckets)
	cfg = clients(t)
	responses, assets := fmt.Sprintf("framework-%d", time.Now().UnixNano()), "cdk-hnb659fds-assets-"+account+"-"+region
	for name, client := range map[string]*s3.Client{responses: signing, assets: buckets} {
		if _, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name}); err != nil {
			t.Fatal(err)
		}
		// Names of buckets are everybody's, and the next suite on this emulator has an account of its own.
		t.Cleanup(func() { removeBucket(t, client, name) })
	}
	own := onlyDirect(e.providers)
	// The handlers and the waiter take their own time: what they may take must not run out faster than time goes by.
	own.Custom = &custom.Provider{
		Functions: func(string, string) custom.Functions { return lambda.NewFromConfig(cfg) },
		Topics:    func(string, string) custom.Topics { return sns.NewFromConfig(cfg) },
		Responses: &custom.Bucket{Client: signing, Name: responses},
		Clock:     clock.Real{},
	}
	e.Providers = own
	f := &framework{engine: e, stack: "framework", ssm: ssm.NewFromConfig(cfg)}
	asm := synthesized(t)
	publisher := &asset.Publisher{Bucket: bucketOf{buckets}}
	for _, a := range asm.Stacks[0].Assets {
		if _, err := publisher.Publish(t.Context(), a, asset.Env{Account: account, Region: region}); err != nil {
			t.Fatal(err)
		}
	}
	f.template = asm.Stacks[0].Template
	return f
}

// with is the app's template with these properties of its custom resources. "More" is what a third one does.
func (f *framework) with(t *testing.T, properties object) object {
	t.Helper()
	var template object
	if err := decode(f.template, &template); err != nil {
		t.Fatal(err)
	}
	// What only CloudFormation and the bootstrap stack need.
	delete(template, "Rules")
	delete(template, "Parameters")
	resources := template["Resources"].(object)
	if properties["More"] != nil {
		more := maps.Clone(resources["Quick"].(object)["Properties"].(object))
		maps.Copy(more, object{"Kind": "more", "Name": "one", "Color": "red", "Do": properties["More"]})
		resources["More"] = object{"Type": "Custom::More", "Properties": more}
	}
	for _, id := range []string{"Quick", "Slow"} {
		own := resources[id].(object)["Properties"].(object)
		maps.Copy(own, properties)
		delete(own, "More")
	}
	return template
}

func (f *framework) deploy(t *testing.T, properties object) {
	t.Helper()
	var err error
	if f.record, err = f.engine.deploy(t, f.stack, f.with(t, properties)); err != nil {
		t.Fatalf("deploying %s: %v", text(properties), err)
	}
}

// fails deploys what the handler refuses, for a reason that reaches the user.
func (f *framework) fails(t *testing.T, properties object, reason string) {
	t.Helper()
	_, err := f.engine.deploy(t, f.stack, f.with(t, properties))
	if err == nil || !strings.Contains(err.Error(), reason) {
		t.Fatalf("deploying %s: %v, want %q", text(properties), err, reason)
	}
}

func (f *framework) says(t *testing.T, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got := f.record.outputs[name]; got != value {
			t.Errorf("output %s is %q, want %q", name, got, value)
		}
	}
}

// expect compares the things that there are.
func (f *framework) expect(t *testing.T, want map[string]string) {
	t.Helper()
	out, err := f.ssm.GetParametersByPath(t.Context(), &ssm.GetParametersByPathInput{Path: aws.String("/things"), Recursive: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	var have, should []string
	for _, p := range out.Parameters {
		have = append(have, aws.ToString(p.Name)+" = "+aws.ToString(p.Value))
	}
	for name, value := range want {
		should = append(should, name+" = "+value)
	}
	slices.Sort(have)
	if slices.Sort(should); !slices.Equal(have, should) {
		t.Errorf("there is %q, want %q", have, should)
	}
}

// synthesized is the assembly of the app. npm installs CDK below .cache, once for each version.
func synthesized(t *testing.T) *assembly.Assembly {
	t.Helper()
	dir, err := filepath.Abs("../../../.cache/framework")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("framework/package.json")
	if err != nil {
		t.Fatal(err)
	}
	have, _ := os.ReadFile(filepath.Join(dir, "package.json"))
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil || !bytes.Equal(have, want) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, "package.json"), want)
		command(t, dir, "npm", "install", "--silent", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts")
	}
	// The app stands beside its modules, where Node.js looks for them.
	work := filepath.Join(dir, "app")
	if err := os.MkdirAll(filepath.Join(work, "handler"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"app.js", "handler/index.js"} {
		source, err := os.ReadFile(filepath.Join("framework", name))
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(work, name), source)
	}
	out := t.TempDir()
	command(t, work, "node", "app.js", out)
	asm, err := assembly.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	return asm
}

func put(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

func command(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, args[0], err, out)
	}
}

// bucketOf is S3 as assets are published to it.
type bucketOf struct{ client *s3.Client }

func (b bucketOf) Exists(ctx context.Context, bucket, key string) (bool, error) {
	out, err := b.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &bucket, Prefix: &key})
	return err == nil && len(out.Contents) > 0, err
}

func (b bucketOf) Put(ctx context.Context, bucket, key string, body io.ReadSeeker, size int64) error {
	_, err := b.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: body, ContentLength: &size})
	return err
}

// removeBucket deletes a bucket with what is in it.
func removeBucket(t *testing.T, client *s3.Client, name string) {
	ctx := context.WithoutCancel(t.Context())
	pages := s3.NewListObjectsV2Paginator(client, &s3.ListObjectsV2Input{Bucket: &name})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		for _, o := range page.Contents {
			if _, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &name, Key: o.Key}); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := client.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &name}); err != nil {
		t.Error(err)
	}
}
