package s3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/objectstore/s3"
)

// answer is one scripted answer of S3.
type answer struct {
	status int
	header http.Header
	body   string
	// broken ends the body with an error.
	broken bool
}

// refusal is an error as S3 words it.
func refusal(status int, code string) answer {
	return answer{status: status, body: "<Error><Code>" + code + "</Code><Message>m</Message></Error>"}
}

// wire plays answers in order and keeps what was asked.
type wire struct {
	mu      sync.Mutex
	answers []answer
	asked   []*http.Request
	bodies  []string
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var sent []byte
	if r.Body != nil {
		var err error
		if sent, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	w.asked, w.bodies = append(w.asked, r), append(w.bodies, string(sent))
	if len(w.answers) == 0 {
		return nil, fmt.Errorf("no answer is left for %s %s", r.Method, r.URL)
	}
	a := w.answers[0]
	w.answers = w.answers[1:]
	if a.header == nil {
		a.header = http.Header{}
	}
	var body io.Reader = strings.NewReader(a.body)
	length := int64(len(a.body))
	if a.broken {
		body, length = io.MultiReader(body, errReader{}), length+1
	}
	if r.Method == http.MethodHead {
		body = bytes.NewReader(nil)
	}
	return &http.Response{
		StatusCode: a.status, Header: a.header, Body: io.NopCloser(body), ContentLength: length, Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

const owner = "111111111111"

// over returns a store that is answered by the script, the script, and the clock it waits on.
func over(t *testing.T, answers ...answer) (*s3.Store, *wire, *clock.Fake) {
	t.Helper()
	w := &wire{answers: answers}
	clk := clock.NewFake(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC))
	clk.AutoAdvance = true
	client := s3.NewClient(aws.Config{
		Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", ""),
		HTTPClient: &http.Client{Transport: w}, Retryer: func() aws.Retryer { return aws.NopRetryer{} },
	}, "")
	t.Cleanup(func() {
		if len(w.answers) > 0 {
			t.Errorf("%d answers were not asked for", len(w.answers))
		}
		for _, r := range w.asked {
			if got := r.Header.Get("X-Amz-Expected-Bucket-Owner"); got != owner {
				t.Errorf("%s %s names the owner %q", r.Method, r.URL, got)
			}
		}
	})
	return &s3.Store{Client: client, Bucket: "state", Owner: owner, Clock: clk}, w, clk
}

// etag is the header of a successful put.
func etag(v string) http.Header { return http.Header{"Etag": {v}} }

func TestConditionsCrossAsHeaders(t *testing.T) {
	s, w, _ := over(t,
		answer{status: 200, header: etag(`"1"`)}, answer{status: 200, header: etag(`"2"`)},
		answer{status: 200, header: etag(`"3"`)}, answer{status: 204}, answer{status: 204})
	ctx := t.Context()
	for i, c := range []struct {
		cond         objectstore.Condition
		match, none  string
		wantReturned string
	}{
		{objectstore.Condition{IfNoneMatch: true}, "", "*", `"1"`},
		{objectstore.Condition{IfMatch: `"1"`}, `"1"`, "", `"2"`},
		{objectstore.Condition{}, "", "", `"3"`},
	} {
		got, err := s.Put(ctx, "a/b c.json", []byte("body"), c.cond)
		if err != nil || got != c.wantReturned {
			t.Fatalf("Put %d = %s, %v", i, got, err)
		}
		h := w.asked[i].Header
		if h.Get("If-Match") != c.match || h.Get("If-None-Match") != c.none {
			t.Errorf("Put %d asks If-Match %q, If-None-Match %q", i, h.Get("If-Match"), h.Get("If-None-Match"))
		}
		if h.Get("Content-Type") != "application/json" || !strings.Contains(w.bodies[i], "body") {
			t.Errorf("Put %d sends %q as %q", i, w.bodies[i], h.Get("Content-Type"))
		}
		if got := w.asked[i].URL.EscapedPath(); got != "/a/b%20c.json" {
			t.Errorf("Put %d goes to %s", i, got)
		}
	}
	if err := s.Delete(ctx, "k", objectstore.Condition{IfMatch: `"3"`}); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(ctx, "k", objectstore.Condition{}); err != nil {
		t.Fatal(err)
	}
	if a, b := w.asked[3].Header.Get("If-Match"), w.asked[4].Header.Get("If-Match"); a != `"3"` || b != "" {
		t.Errorf("the deletes ask If-Match %q and %q", a, b)
	}
}

func TestAnswersBecomeTheErrorsOfTheContract(t *testing.T) {
	put := func(cond objectstore.Condition) func(context.Context, *s3.Store) error {
		return func(ctx context.Context, s *s3.Store) error {
			_, err := s.Put(ctx, "k", []byte("x"), cond)
			return err
		}
	}
	del := func(cond objectstore.Condition) func(context.Context, *s3.Store) error {
		return func(ctx context.Context, s *s3.Store) error { return s.Delete(ctx, "k", cond) }
	}
	get := func(ctx context.Context, s *s3.Store) error { _, err := s.Get(ctx, "k"); return err }
	head := func(ctx context.Context, s *s3.Store) error { _, err := s.Head(ctx, "k"); return err }
	match, none := objectstore.Condition{IfMatch: `"e"`}, objectstore.Condition{IfNoneMatch: true}
	missing, failed := objectstore.ErrNotFound, objectstore.ErrPrecondition
	for _, c := range []struct {
		name    string
		call    func(context.Context, *s3.Store) error
		answers []answer
		want    error // nil: neither of the two
	}{
		{"reading a key that is not there", get, []answer{refusal(404, "NoSuchKey")}, missing},
		{"reading from a bucket that is not there", get, []answer{refusal(404, "NoSuchBucket")}, nil},
		{"reading from somebody else's bucket", get, []answer{refusal(403, "AccessDenied")}, nil},
		{"describing a key that is not there", head, []answer{{status: 404}, {status: 200}}, missing},
		{"describing an object of a bucket that is not there", head, []answer{{status: 404}, {status: 404}}, nil},
		{"a first write where something stands", put(none), []answer{refusal(412, "PreconditionFailed")}, failed},
		{"a write over another version", put(match), []answer{refusal(412, "PreconditionFailed"), {status: 200}}, failed},
		{"a write over a delete marker", put(match), []answer{refusal(412, "PreconditionFailed"), {status: 404}, {status: 200}}, missing},
		{"a write over nothing", put(match), []answer{refusal(404, "NoSuchKey")}, missing},
		{"a write into a bucket that is not there", put(match), []answer{refusal(404, "NoSuchBucket")}, nil},
		{"a delete of another version", del(match), []answer{refusal(412, "PreconditionFailed"), {status: 200}}, failed},
		{"a delete of nothing under a condition", del(match), []answer{refusal(404, "NoSuchKey")}, missing},
		{"a delete of a delete marker under a condition", del(match), []answer{refusal(412, "PreconditionFailed"), {status: 404}, {status: 200}}, missing},
		{"another conflict", put(none), []answer{refusal(409, "InvalidBucketState")}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _, _ := over(t, c.answers...)
			err := c.call(t.Context(), s)
			if err == nil || !strings.Contains(err.Error(), "k") {
				t.Fatalf("error is %v", err)
			}
			for _, known := range []error{missing, failed} {
				if errors.Is(err, known) != errors.Is(c.want, known) {
					t.Fatalf("error is %v, want %v", err, c.want)
				}
			}
		})
	}
	t.Run("a delete of nothing", func(t *testing.T) {
		s, _, _ := over(t, refusal(404, "NoSuchKey"))
		if err := s.Delete(t.Context(), "k", objectstore.Condition{}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAConflictInFlightIsRepeatedWithGrowingWaits(t *testing.T) {
	busy := refusal(409, "ConditionalRequestConflict")
	s, w, clk := over(t, busy, busy, refusal(409, "OperationAborted"), answer{status: 200, header: etag(`"1"`)})
	start := clk.Now()
	got, err := s.Put(t.Context(), "k", []byte("the body"), objectstore.Condition{IfNoneMatch: true})
	if err != nil || got != `"1"` {
		t.Fatalf("Put = %s, %v", got, err)
	}
	for i, b := range w.bodies {
		if b != "the body" {
			t.Errorf("attempt %d sends %q", i, b)
		}
	}
	// 50 + 100 + 200 ms, each at least half of it.
	if waited := clk.Now().Sub(start); waited < 175*time.Millisecond || waited > 350*time.Millisecond {
		t.Errorf("it waited %v", waited)
	}

	s, _, _ = over(t, busy, answer{status: 204})
	if err := s.Delete(t.Context(), "k", objectstore.Condition{IfMatch: `"1"`}); err != nil {
		t.Fatal(err)
	}
}

func TestAConflictThatStaysIsAFailure(t *testing.T) {
	var busy []answer
	for range 7 {
		busy = append(busy, refusal(409, "ConditionalRequestConflict"))
	}
	s, _, _ := over(t, busy...)
	_, err := s.Put(t.Context(), "k", nil, objectstore.Condition{IfNoneMatch: true})
	if err == nil || errors.Is(err, objectstore.ErrPrecondition) || errors.Is(err, objectstore.ErrNotFound) {
		t.Fatalf("error is %v", err)
	}
}

func TestAnEndedContextEndsTheRepeats(t *testing.T) {
	s, _, _ := over(t, refusal(409, "ConditionalRequestConflict"))
	ctx, cancel := context.WithCancel(t.Context())
	s.Clock = cancelling{cancel}
	_, err := s.Put(ctx, "k", nil, objectstore.Condition{IfNoneMatch: true})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error is %v", err)
	}
}

// cancelling is a clock whose sleeper is interrupted.
type cancelling struct{ cancel context.CancelFunc }

func (cancelling) Now() time.Time { return time.Time{} }
func (c cancelling) Sleep(ctx context.Context, _ time.Duration) error {
	c.cancel()
	return ctx.Err()
}

func TestABodyThatBreaksOffIsReadAgain(t *testing.T) {
	s, _, _ := over(t, answer{status: 200, body: "hal", broken: true}, answer{status: 200, body: "half", header: etag(`"1"`)})
	o, err := s.Get(t.Context(), "k")
	if err != nil || string(o.Body) != "half" || o.Size != 4 || o.ETag != `"1"` {
		t.Fatalf("Get = %+v, %v", o, err)
	}
}

func TestAListIsPagedAndDecoded(t *testing.T) {
	page := func(rest, key string) answer {
		return answer{status: 200, body: `<ListBucketResult>` + rest + `<Contents><Key>` + key +
			`</Key><ETag>"e"</ETag><Size>3</Size><LastModified>2026-05-04T03:02:01.000Z</LastModified></Contents></ListBucketResult>`}
	}
	s, w, _ := over(t,
		page(`<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><NextContinuationToken>next</NextContinuationToken>`, `p/%01+a%2Bb`),
		page(`<IsTruncated>false</IsTruncated>`, `p/100%+1`))
	infos, err := s.List(t.Context(), "p/")
	if err != nil || len(infos) != 2 {
		t.Fatalf("List = %v, %v", infos, err)
	}
	if infos[0].Key != "p/\x01 a+b" || infos[1].Key != "p/100%+1" || infos[0].Size != 3 || infos[0].LastModified.Year() != 2026 {
		t.Errorf("List = %+v", infos)
	}
	if q := w.asked[1].URL.Query(); q.Get("continuation-token") != "next" || q.Get("prefix") != "p/" {
		t.Errorf("the second page is asked for with %v", q)
	}
}

func TestAListThatCannotGoOnIsAnError(t *testing.T) {
	s, _, _ := over(t, answer{status: 200, body: `<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>`})
	if infos, err := s.List(t.Context(), ""); err == nil {
		t.Fatalf("List = %v", infos)
	}
}

func TestAKeyThatS3CannotHoldIsRefusedWithoutACall(t *testing.T) {
	s, _, _ := over(t)
	for _, key := range []string{"", "\xff", strings.Repeat("k", 1025)} {
		if _, err := s.Get(t.Context(), key); err == nil {
			t.Errorf("Get(%q) was accepted", key)
		}
		if _, err := s.Put(t.Context(), key, nil, objectstore.Condition{}); err == nil {
			t.Errorf("Put(%q) was accepted", key)
		}
	}
}

func TestTheRegionOfABucketIsReadFromAnyRegion(t *testing.T) {
	named := http.Header{"X-Amz-Bucket-Region": {"us-west-2"}}
	for _, a := range []answer{{status: 200, header: named}, {status: 301, header: named}} {
		s, _, _ := over(t, a)
		if region, err := s3.BucketRegion(t.Context(), s.Client, "b", owner); err != nil || region != "us-west-2" {
			t.Errorf("after %d: %q, %v", a.status, region, err)
		}
	}
	for _, a := range []answer{{status: 404}, {status: 403, header: named}, {status: 200}} {
		s, _, _ := over(t, a)
		if region, err := s3.BucketRegion(t.Context(), s.Client, "b", owner); err == nil {
			t.Errorf("after %d: %q", a.status, region)
		}
	}
}
