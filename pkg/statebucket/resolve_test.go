package statebucket_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/localdb"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	locals "github.com/slipway-cdk/slipway/pkg/objectstore/local"
	"github.com/slipway-cdk/slipway/pkg/statebucket"
)

const account = "111122223333"

// fakeBucket is what S3 says of one bucket.
type fakeBucket struct {
	status int
	region string
	filled bool
}

// fakeS3 answers HeadBucket and ListObjectsV2, and keeps the owners that were expected.
type fakeS3 struct {
	buckets map[string]fakeBucket

	mu     sync.Mutex
	owners map[string]bool
}

func (f *fakeS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.owners[r.Header.Get("X-Amz-Expected-Bucket-Owner")] = true
	f.mu.Unlock()
	b, ok := f.buckets[strings.Trim(r.URL.Path, "/")]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if r.Method == http.MethodHead {
		if b.region != "" {
			w.Header().Set("X-Amz-Bucket-Region", b.region)
		}
		w.WriteHeader(b.status)
		return
	}
	body := `<ListBucketResult><IsTruncated>false</IsTruncated>`
	if b.filled && r.URL.Query().Get("prefix") == "cdkd/" {
		body += `<Contents><Key>cdkd/App/eu-west-1/state.json</Key></Contents>`
	}
	_, _ = w.Write([]byte(body + `</ListBucketResult>`))
}

func TestTheBucketIsChosenAsCdkdChoosesIt(t *testing.T) {
	const now, legacy = "cdkd-state-" + account, "cdkd-state-" + account + "-eu-west-1"
	here := fakeBucket{status: 200, region: "us-east-1"}
	moved := fakeBucket{status: 301, region: "ap-south-1"}
	full := fakeBucket{status: 200, region: "eu-west-1", filled: true}
	for _, c := range []struct {
		name    string
		choice  statebucket.Choice
		buckets map[string]fakeBucket
		want    statebucket.Found
		err     string
	}{
		{"the new name", statebucket.Choice{}, map[string]fakeBucket{now: here}, statebucket.Found{Name: now, Region: "us-east-1"}, ""},
		{"the new name in another region", statebucket.Choice{}, map[string]fakeBucket{now: moved}, statebucket.Found{Name: now, Region: "ap-south-1"}, ""},
		{"the legacy name alone", statebucket.Choice{}, map[string]fakeBucket{legacy: here}, statebucket.Found{Name: legacy, Region: "us-east-1", Legacy: true}, ""},
		{"both, and both empty", statebucket.Choice{}, map[string]fakeBucket{now: here, legacy: here}, statebucket.Found{Name: now, Region: "us-east-1"}, ""},
		{"both, and both full", statebucket.Choice{}, map[string]fakeBucket{now: full, legacy: full}, statebucket.Found{Name: now, Region: "eu-west-1"}, ""},
		{"both, and only the legacy one full", statebucket.Choice{}, map[string]fakeBucket{now: here, legacy: full}, statebucket.Found{Name: legacy, Region: "eu-west-1", Legacy: true}, ""},
		{"the new one, and a legacy one that is denied", statebucket.Choice{}, map[string]fakeBucket{now: here, legacy: {status: 403}}, statebucket.Found{Name: now, Region: "us-east-1"}, ""},
		{"the new one denied", statebucket.Choice{}, map[string]fakeBucket{now: {status: 403}, legacy: full}, statebucket.Found{}, "can't be used"},
		{"only a legacy one that is denied", statebucket.Choice{}, map[string]fakeBucket{legacy: {status: 403}}, statebucket.Found{}, "can't be used"},
		{"none", statebucket.Choice{}, nil, statebucket.Found{}, "has no state bucket"},
		{"a given name", statebucket.Choice{Bucket: "mine", From: "--state-bucket"}, map[string]fakeBucket{"mine": moved, now: full}, statebucket.Found{Name: "mine", Region: "ap-south-1"}, ""},
		{"a given name that is not there", statebucket.Choice{Bucket: "mine", From: "SLIPWAY_STATE_BUCKET"}, map[string]fakeBucket{now: full}, statebucket.Found{}, "there is no state bucket mine"},
		{"a given name that is denied", statebucket.Choice{Bucket: "mine", From: "cdk.json"}, map[string]fakeBucket{"mine": {status: 403}}, statebucket.Found{}, "another account's"},
		// Nothing is said of the bucket: it must not pass for missing.
		{"an answer that says nothing", statebucket.Choice{}, map[string]fakeBucket{now: {status: 400}, legacy: full}, statebucket.Found{}, "finding the region of bucket"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fake := &fakeS3{buckets: c.buckets, owners: map[string]bool{}}
			server := httptest.NewServer(fake)
			defer server.Close()
			cfg := aws.Config{Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), HTTPClient: server.Client()}
			got, err := statebucket.Resolve(t.Context(), cfg, account, "eu-west-1", c.choice)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("the error is %v, want one that says %q", err, c.err)
				}
				if strings.Contains(c.err, "no state bucket") && !errors.Is(err, statebucket.ErrNone) {
					t.Errorf("ErrNone is not in the chain of %v", err)
				}
				if c.err != "finding the region of bucket" && diag.From(err)[0].Next == "" {
					t.Errorf("%v does not say what next", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Name != c.want.Name || got.Region != c.want.Region || got.Legacy != c.want.Legacy || got.Owner != account {
				t.Errorf("found %+v, want %+v", got, c.want)
			}
			if got.Legacy != (len(got.Warnings) == 1) {
				t.Errorf("the warnings are %v", got.Warnings)
			}
			if len(fake.owners) != 1 || !fake.owners[account] {
				t.Errorf("the owners that were expected are %v", fake.owners)
			}
		})
	}
}

func TestTheFirstNameThatIsGivenCounts(t *testing.T) {
	all := map[string]string{"SLIPWAY_STATE_BUCKET": "slipway", "CDKD_STATE_BUCKET": "cdkd"}
	file := map[string]any{"cdkd": map[string]any{"stateBucket": "file"}}
	both := map[string]any{"slipway": map[string]any{"stateBucket": "own"}, "cdkd": map[string]any{"stateBucket": "file"}}
	for _, c := range []struct {
		name, flag string
		env        map[string]string
		context    map[string]any
		want       string
	}{
		{"the flag", "flag", all, file, "flag"},
		{"Slipway's variable", "", all, file, "slipway"},
		{"cdkd's variable", "", map[string]string{"CDKD_STATE_BUCKET": "cdkd"}, file, "cdkd"},
		{"Slipway's configuration", "", nil, both, "own"},
		{"cdkd's configuration", "", nil, file, "file"},
		{"nothing", "", nil, map[string]any{"cdkd": "what"}, ""},
	} {
		got := statebucket.Choose(c.flag, func(name string) string { return c.env[name] }, c.context)
		if got.Bucket != c.want || (got.Bucket == "") != (got.From == "") {
			t.Errorf("%s: chosen is %+v, want %q", c.name, got, c.want)
		}
	}
}

func TestCallsWaitForTheBucketAndAFailedSearchIsBegunAgain(t *testing.T) {
	db, err := localdb.Open(filepath.Join(t.TempDir(), "objects.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	inner, err := locals.New(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	begun, gate := make(chan int, 8), make(chan error)
	n := 0
	opening, end := context.WithCancel(t.Context())
	s := statebucket.NewStore(opening, func(ctx context.Context) (objectstore.Store, statebucket.Found, error) {
		n++
		begun <- n
		if err := errors.Join(<-gate, ctx.Err()); err != nil {
			return nil, statebucket.Found{}, err
		}
		return inner, statebucket.Found{Name: "b"}, nil
	})
	end() // the search is not bound to who has begun it
	<-begun
	impatient, leave := context.WithCancel(t.Context())
	leave()
	if _, err := s.Get(impatient, "k"); !errors.Is(err, context.Canceled) {
		t.Errorf("who does not wait is told %v", err)
	}
	failed := errors.New("no network")
	go func() { gate <- failed }()
	if _, err := s.List(t.Context(), ""); !errors.Is(err, failed) {
		t.Errorf("the error is %v", err)
	}
	go func() { gate <- nil }()
	if _, err := s.Put(t.Context(), "k", []byte("x"), objectstore.Condition{}); err != nil {
		t.Fatal(err)
	}
	if o, err := s.Get(t.Context(), "k"); err != nil || string(o.Body) != "x" {
		t.Errorf("%q, %v", o.Body, err)
	}
	if _, err := s.Head(t.Context(), "k"); err != nil {
		t.Error(err)
	}
	if err := s.Delete(t.Context(), "k", objectstore.Condition{}); err != nil {
		t.Error(err)
	}
	if f, err := s.Found(t.Context()); err != nil || f.Name != "b" {
		t.Errorf("%+v, %v", f, err)
	}
	if n != 2 {
		t.Errorf("%d searches, want 2", n)
	}
}
