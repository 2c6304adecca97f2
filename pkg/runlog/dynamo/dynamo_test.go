package dynamo_test

import (
	"encoding/json"
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
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/runlog/dynamo"
)

// answer is one scripted answer of DynamoDB: a body, or an error with its code and members. A body may depend
// on what was asked.
type answer struct {
	code string
	body string
	make func(asked map[string]any) string
}

// cancelled is a transaction's cancellation for reasons.
func cancelled(reasons ...string) answer {
	var list []string
	for _, r := range reasons {
		list = append(list, `{"Code":"`+r+`"}`)
	}
	return answer{code: "TransactionCanceledException", body: `"CancellationReasons":[` + strings.Join(list, ",") + `]`}
}

// headerItem is the header of a run as GetItem returns it.
func headerItem(status runlog.Status, epoch int) answer {
	return answer{body: fmt.Sprintf(`{"Item":{"pk":{"S":"run#r"},"sk":{"S":"header"},"status":{"S":%q},"epoch":{"N":"%d"},"body":{"S":"{}"}}}`, status, epoch)}
}

// wire plays answers in order and keeps what was asked.
type wire struct {
	mu      sync.Mutex
	answers []answer
	targets []string
	asked   []map[string]any
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	asked := map[string]any{}
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, err
	}
	_, target, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	w.targets, w.asked = append(w.targets, target), append(w.asked, asked)
	if len(w.answers) == 0 {
		return nil, fmt.Errorf("no answer is left for %s", target)
	}
	a := w.answers[0]
	w.answers = w.answers[1:]
	status := 200
	if a.make != nil {
		a.body = a.make(asked)
	}
	if a.code != "" {
		members := ""
		if a.body != "" {
			members = "," + a.body
		}
		status, a.body = 400, `{"__type":"com.amazonaws.dynamodb.v20120810#`+a.code+`","message":"m"`+members+`}`
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(a.body)), Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// over returns a store that is answered by the script, the script, and the clock it waits on.
func over(t *testing.T, answers ...answer) (*dynamo.Store, *wire, *clock.Fake) {
	t.Helper()
	w := &wire{answers: answers}
	clk := clock.NewFake(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC))
	clk.AutoAdvance = true
	client := dynamodb.NewFromConfig(aws.Config{
		Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", ""),
		HTTPClient: &http.Client{Transport: w}, Retryer: func() aws.Retryer { return aws.NopRetryer{} },
	})
	t.Cleanup(func() {
		if len(w.answers) > 0 {
			t.Errorf("%d answers were not asked for", len(w.answers))
		}
	})
	return &dynamo.Store{Client: client, Table: "t", Clock: clk}, w, clk
}

var contract = []error{runlog.ErrNotFound, runlog.ErrExists, runlog.ErrConflict, runlog.ErrFenced}

// want demands the error, or with nil an error that is none of the contract's.
func want(t *testing.T, got, wanted error) {
	t.Helper()
	if got == nil {
		t.Fatal("there is no error")
	}
	for _, e := range contract {
		if errors.Is(got, e) != errors.Is(wanted, e) {
			t.Fatalf("error is %v, want %v", got, wanted)
		}
	}
}

func TestACancelledTransactionBecomesTheErrorOfTheContract(t *testing.T) {
	const failed, none = "ConditionalCheckFailed", "None"
	open := headerItem(runlog.StatusOpen, 1)
	for _, c := range []struct {
		name    string
		answers []answer
		want    error
	}{
		{"the header is not as expected", []answer{cancelled(failed, none), headerItem(runlog.StatusSettling, 2)}, runlog.ErrFenced},
		{"another epoch", []answer{cancelled(failed, none), headerItem(runlog.StatusOpen, 2)}, runlog.ErrFenced},
		{"the header was not as expected a moment ago", []answer{cancelled(failed, none), open}, runlog.ErrFenced},
		{"both conditions fail", []answer{cancelled(failed, failed), headerItem(runlog.StatusSettling, 2)}, runlog.ErrFenced},
		{"the record's condition is all that is told, and the run is fenced", []answer{cancelled(none, failed), headerItem(runlog.StatusSettling, 2)}, runlog.ErrFenced},
		{"another version", []answer{cancelled(none, failed), open}, runlog.ErrConflict},
		{"no such run", []answer{cancelled(failed, none), {body: `{}`}}, runlog.ErrNotFound},
		{"the item is invalid", []answer{cancelled(none, "ValidationError")}, nil},
		{"no permission", []answer{{code: "AccessDeniedException"}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _, _ := over(t, c.answers...)
			_, err := s.PutOp(t.Context(), "r", runlog.StatusOpen, runlog.Op{OpID: "A", Epoch: 1})
			want(t, err, c.want)
		})
	}
}

func TestTransactionsThatMeetAreRepeatedUnderOneToken(t *testing.T) {
	s, w, clk := over(t, cancelled("TransactionConflict", "None"), cancelled("None", "ThrottlingError"),
		answer{code: "TransactionInProgressException"}, answer{code: "ProvisionedThroughputExceededException"}, answer{body: `{}`})
	start := clk.Now()
	op, err := s.PutOp(t.Context(), "r", runlog.StatusOpen, runlog.Op{OpID: "A", Epoch: 1, Version: 4})
	if err != nil || op.Version != 5 {
		t.Fatalf("PutOp = %+v, %v", op, err)
	}
	for _, asked := range w.asked {
		if token := asked["ClientRequestToken"]; token != w.asked[0]["ClientRequestToken"] || len(token.(string)) != 32 {
			t.Errorf("the token is %v", token)
		}
	}
	// 20 + 40 + 80 + 160 ms, each at least half of it.
	if waited := clk.Now().Sub(start); waited < 150*time.Millisecond || waited > 300*time.Millisecond {
		t.Errorf("it waited %v", waited)
	}
}

func TestAConflictThatStaysIsAFailure(t *testing.T) {
	var conflicts []answer
	for range 14 {
		conflicts = append(conflicts, cancelled("TransactionConflict", "None"))
	}
	s, _, clk := over(t, conflicts...)
	start := clk.Now()
	_, err := s.PutOp(t.Context(), "r", runlog.StatusOpen, runlog.Op{OpID: "A", Epoch: 1})
	want(t, err, nil)
	if waited := clk.Now().Sub(start); waited < 4*time.Second || waited > 10*time.Second {
		t.Errorf("it waited %v", waited)
	}
}

// standing refuses a header's write because of one that stands there with a mark.
func standing(mark func(asked map[string]any) string) answer {
	return answer{code: "ConditionalCheckFailedException", make: func(asked map[string]any) string {
		return `"Item":{"pk":{"S":"run#r"},"version":{"N":"4"},"mark":{"S":"` + mark(asked) + `"}}`
	}}
}

func TestAHeaderThatIsRefusedBecauseItStandsAlreadyIsWritten(t *testing.T) {
	mine := func(asked map[string]any) string {
		return asked["Item"].(map[string]any)["mark"].(map[string]any)["S"].(string)
	}
	s, _, _ := over(t, standing(mine), standing(mine))
	if h, err := s.CreateRun(t.Context(), runlog.Header{RunID: "r"}); err != nil || h.Version != 1 {
		t.Fatalf("CreateRun = %+v, %v", h, err)
	}
	if h, err := s.UpdateHeader(t.Context(), runlog.Header{RunID: "r", Version: 3}); err != nil || h.Version != 4 {
		t.Fatalf("UpdateHeader = %+v, %v", h, err)
	}
}

func TestAHeaderOfSomebodyElseIsAConflict(t *testing.T) {
	theirs := func(map[string]any) string { return "theirs" }
	s, _, _ := over(t, standing(theirs), standing(theirs), answer{code: "ConditionalCheckFailedException"})
	_, err := s.CreateRun(t.Context(), runlog.Header{RunID: "r"})
	want(t, err, runlog.ErrExists)
	_, err = s.UpdateHeader(t.Context(), runlog.Header{RunID: "r", Version: 3})
	want(t, err, runlog.ErrConflict)
	_, err = s.UpdateHeader(t.Context(), runlog.Header{RunID: "r", Version: 3})
	want(t, err, runlog.ErrNotFound)
}

func TestAFenceIsFollowedByAGraceAndAnOrdinaryUpdateIsNot(t *testing.T) {
	old := answer{body: `{"Attributes":{"epoch":{"N":"1"}}}`}
	s, _, clk := over(t, old, old)
	start := clk.Now()
	if _, err := s.UpdateHeader(t.Context(), runlog.Header{RunID: "r", Version: 1, Epoch: 1, Status: runlog.StatusClosed}); err != nil {
		t.Fatal(err)
	}
	if waited := clk.Now().Sub(start); waited != 0 {
		t.Errorf("an update waits %v", waited)
	}
	if _, err := s.UpdateHeader(t.Context(), runlog.Header{RunID: "r", Version: 1, Epoch: 2, Status: runlog.StatusSettling}); err != nil {
		t.Fatal(err)
	}
	if waited := clk.Now().Sub(start); waited != time.Second {
		t.Errorf("a fence waits %v", waited)
	}
}

func TestKnownEventsAreTakenOutOfABatch(t *testing.T) {
	s, w, _ := over(t, cancelled("None", "ConditionalCheckFailed", "None"), cancelled("TransactionConflict", "None"),
		cancelled("ConditionalCheckFailed", "None"), answer{code: "ConditionalCheckFailedException"})
	event := func(id string) runlog.Event { return runlog.Event{RunID: "r", ID: id} }
	if err := s.Append(t.Context(), event("1"), event("2"), event("1"), event("3")); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(w.targets); got != "[TransactWriteItems TransactWriteItems TransactWriteItems PutItem]" {
		t.Errorf("calls are %s", got)
	}
	if n := len(w.asked[2]["TransactItems"].([]any)); n != 2 {
		t.Errorf("the second batch has %d events", n)
	}
}

func TestABatchKeepsToTheLimitsOfATransaction(t *testing.T) {
	s, w, _ := over(t, answer{body: `{}`}, answer{body: `{}`}, answer{body: `{}`})
	var events []runlog.Event
	for i := range 230 {
		events = append(events, runlog.Event{RunID: "r", ID: fmt.Sprint(i)})
	}
	if err := s.Append(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
	for i, n := range []int{100, 100, 30} {
		if got := len(w.asked[i]["TransactItems"].([]any)); got != n {
			t.Errorf("batch %d has %d events, want %d", i, got, n)
		}
	}
	s, w, _ = over(t, answer{body: `{}`}, answer{body: `{}`})
	for i := range events[:20] {
		events[i].Message = strings.Repeat("x", 200<<10)
	}
	if err := s.Append(t.Context(), events[:20]...); err != nil {
		t.Fatal(err)
	}
	if got := len(w.asked[0]["TransactItems"].([]any)); got != 15 {
		t.Errorf("3 MB hold %d events of 200 KB, want 15", got)
	}
}

func TestReadsAreStronglyConsistent(t *testing.T) {
	s, w, _ := over(t, headerItem(runlog.StatusOpen, 1), answer{body: `{}`}, answer{body: `{"Items":[]}`}, answer{body: `{"Items":[]}`})
	if _, err := s.Header(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	if head, err := s.Head(t.Context(), runlog.StackRef{Account: "1", Region: "r", Name: "n"}); err != nil || head != "" {
		t.Fatal(head, err)
	}
	if _, err := s.Ops(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Events(t.Context(), "r", ""); err != nil {
		t.Fatal(err)
	}
	for i, asked := range w.asked {
		if asked["ConsistentRead"] != true {
			t.Errorf("%s asks with ConsistentRead %v", w.targets[i], asked["ConsistentRead"])
		}
	}
}

func TestADocumentThatNobodyCanHoldIsRefused(t *testing.T) {
	s, _, _ := over(t)
	err := s.Append(t.Context(), runlog.Event{RunID: "r", ID: "1", Message: strings.Repeat("x", 351<<10)})
	want(t, err, nil)
	for _, err := range []error{
		s.Append(t.Context(), runlog.Event{RunID: "r"}), s.Append(t.Context(), runlog.Event{ID: "1"}),
		second(s.CreateRun(t.Context(), runlog.Header{})), second(s.PutOp(t.Context(), "r", runlog.StatusOpen, runlog.Op{})),
	} {
		want(t, err, nil)
	}
}

func second[T any](_ T, err error) error { return err }
