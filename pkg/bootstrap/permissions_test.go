package bootstrap

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/slipway-cdk/slipway/pkg/iampolicy"
	"github.com/slipway-cdk/slipway/pkg/iampolicy/calls"
	"github.com/slipway-cdk/slipway/pkg/statebucket"
)

// bare is an S3 whose buckets have nothing set: those that are there from the beginning, and those that are made.
type bare struct {
	mu      sync.Mutex
	buckets map[string]bool
}

func (b *bare) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	absent := func(code string) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`<Error><Code>` + code + `</Code></Error>`))
	}
	query := r.URL.Query()
	switch {
	case r.Method == http.MethodPut:
		b.buckets[name] = true
	case !b.buckets[name]:
		absent("NoSuchBucket")
	case r.Method == http.MethodHead:
		w.Header().Set("X-Amz-Bucket-Region", "eu-west-1")
	case query.Has("policy"):
		absent("NoSuchBucketPolicy")
	case query.Has("encryption"):
		absent("ServerSideEncryptionConfigurationNotFoundError")
	case query.Has("lifecycle"):
		absent("NoSuchLifecycleConfiguration")
	case query.Has("list-type"):
		_, _ = w.Write([]byte(`<ListBucketResult></ListBucketResult>`))
	default:
		w.WriteHeader(http.StatusNotImplemented)
	}
}

// TestWhatMakingTheStateBucketNeedsIsWhatIsDocumented plays the calls of `bootstrap --bucket-only` for an account without a
// state bucket, with a bare one, and with one of earlier times, and holds them against the policy.
func TestWhatMakingTheStateBucketNeedsIsWhatIsDocumented(t *testing.T) {
	const account, region, key = "111122223333", "eu-west-1", "AKIAEXAMPLE"
	name := statebucket.DefaultName(account)
	needed := BucketPermissions("aws", name, account, region)
	used := map[string]bool{}
	for _, there := range [][]string{nil, {name}, {statebucket.LegacyName(account, region)}, {name, statebucket.LegacyName(account, region)}} {
		world := &bare{buckets: map[string]bool{}}
		for _, b := range there {
			world.buckets[b] = true
		}
		server := httptest.NewServer(world)
		recorder := &calls.Recorder{Principals: map[string]string{key: "me"}, Place: calls.Place{Partition: "aws", Account: account}}
		cfg := aws.Config{
			Region: region, BaseEndpoint: &server.URL, HTTPClient: &http.Client{Transport: recorder},
			Credentials: credentials.NewStaticCredentialsProvider(key, "secret", ""),
		}
		if _, err := statebucket.Resolve(t.Context(), cfg, account, region, statebucket.Choice{}); err != nil && !errors.Is(err, statebucket.ErrNone) {
			t.Fatal(err)
		}
		if _, err := StateBucket(name, region, account).Make(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		server.Close()
		made, err := recorder.Calls()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range made {
			d, err := iampolicy.Evaluate(c.Call, needed)
			if err != nil || !d.Allowed {
				t.Errorf("%s on %s is not allowed: %v", c.Action, c.Resource, err)
			}
			used[c.Action+" "+c.Resource] = true
		}
	}
	// S3 asks for it with the header of CreateBucket that says whose the objects are.
	used["s3:PutBucketOwnershipControls arn:aws:s3:::"+name] = true
	for _, s := range needed.Statement {
		for _, action := range s.Action {
			for _, resource := range s.Resource {
				if !used[action+" "+resource] {
					t.Errorf("%s on %s is allowed, and nothing needs it", action, resource)
				}
			}
		}
	}
	docs, err := os.ReadFile("../../docs/direct.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := needed.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(docs), "```json\n"+string(text)+"```") {
		t.Errorf("docs/direct.md does not have\n%s", text)
	}
	if !slices.ContainsFunc(needed.Statement, func(s iampolicy.Statement) bool { return s.Sid == "MakeStateBucket" }) {
		t.Error("there is no statement for making it")
	}
}
