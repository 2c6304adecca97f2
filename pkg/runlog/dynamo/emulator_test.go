//go:build emulators

package dynamo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/emulators"
	"github.com/slipway-cdk/slipway/pkg/localdb"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	objects "github.com/slipway-cdk/slipway/pkg/objectstore/local"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/runlog/dynamo"
	"github.com/slipway-cdk/slipway/pkg/runlog/runlogtest"
)

// table makes an empty table of its own for a test, and a store in it.
func table(t *testing.T, client *dynamodb.Client) *dynamo.Store {
	t.Helper()
	name := fmt.Sprintf("slipway-test-%d", time.Now().UnixNano())
	// An emulator breaks a connection off now and then, and the client repeats the call: the name is nobody else's.
	var made *types.ResourceInUseException
	if _, err := client.CreateTable(t.Context(), dynamo.Table(name)); err != nil && !errors.As(err, &made) {
		t.Fatalf("creating a table: %v", err)
	}
	if err := dynamodb.NewTableExistsWaiter(client).Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: &name}, time.Minute); err != nil {
		t.Fatalf("waiting for table %s: %v", name, err)
	}
	db, err := localdb.Open(filepath.Join(t.TempDir(), "objects.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	store, err := objects.New(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &dynamo.Store{Client: client, Table: name, Objects: store, Clock: hurried{}}
}

// hurried shortens the waits between repetitions. The grace after a fence is kept: it is part of what is tested.
type hurried struct{ clock.Real }

func (hurried) Sleep(ctx context.Context, d time.Duration) error {
	if d < time.Second {
		d /= 50
	}
	return clock.Real{}.Sleep(ctx, d)
}

func TestTheDynamoDBRunLogKeepsTheContractOnAnEmulator(t *testing.T) {
	client := dynamodb.NewFromConfig(emulators.Config(t))
	leaveOut := emulators.LeaveOut(t, capabilities(t, client))
	t.Run("plain", func(t *testing.T) {
		runlogtest.Run(t, func(t *testing.T) runlog.Store {
			leaveOut(t)
			return table(t, client)
		})
	})
	t.Run("with conflicts, throttling and lost answers", func(t *testing.T) {
		runlogtest.Run(t, func(t *testing.T) runlog.Store {
			leaveOut(t)
			s := table(t, client)
			s.Client = &troubled{API: client}
			return s
		})
	})
}

func TestDocumentsThatAreTooLargeForAnItemGoToTheObjectStore(t *testing.T) {
	s := table(t, dynamodb.NewFromConfig(emulators.Config(t)))
	large := strings.Repeat("é", 300_000)
	h, err := s.CreateRun(t.Context(), runlog.Header{RunID: "r", Status: runlog.StatusOpen, Epoch: 1, Failure: &runlog.Failure{Detail: large}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Header(t.Context(), "r"); err != nil || got.Failure.Detail != large {
		t.Fatalf("the header came back with %v", err)
	}
	if runs, err := s.ListRuns(t.Context(), runlog.Filter{}); err != nil || len(runs) != 1 || runs[0].Failure.Detail != large {
		t.Fatalf("%d runs are listed, %v", len(runs), err)
	}
	after, err := json.Marshal(large)
	if err != nil {
		t.Fatal(err)
	}
	op, err := s.PutOp(t.Context(), "r", runlog.StatusOpen, runlog.Op{OpID: "A", Epoch: 1, After: after})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutOp(t.Context(), "r", runlog.StatusOpen, runlog.Op{OpID: "A", Epoch: 1, After: after}); err == nil {
		t.Fatal("a second record was accepted")
	}
	if got, err := s.Op(t.Context(), "r", "A"); err != nil || string(got.After) != string(op.After) {
		t.Fatalf("the operation came back with %v", err)
	}
	if err := s.Append(t.Context(), runlog.Event{RunID: "r", ID: "1", Message: large}, runlog.Event{RunID: "r", ID: "2", Message: large}); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), runlog.Event{RunID: "r", ID: "1", Message: large}); err != nil {
		t.Fatal(err)
	}
	if events, err := s.Events(t.Context(), "r", ""); err != nil || len(events) != 2 || events[1].Message != large {
		t.Fatalf("%d events came back, %v", len(events), err)
	}
	// One object for each document that stands, none for those that were refused.
	wantObjects(t, s.Objects, 4)
	h.Failure = nil
	if _, err := s.UpdateHeader(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Header(t.Context(), "r"); err != nil || got.Failure != nil {
		t.Fatalf("the small header came back with %v", err)
	}
}

func wantObjects(t *testing.T, s objectstore.Store, n int) {
	t.Helper()
	infos, err := s.List(t.Context(), "slipway/runs/r/log/")
	if err != nil || len(infos) != n {
		t.Fatalf("the object store has %v, %v, want %d", infos, err, n)
	}
}

func TestOnlyAClosedRunExpires(t *testing.T) {
	client := dynamodb.NewFromConfig(emulators.Config(t))
	s := table(t, client)
	h, err := s.CreateRun(t.Context(), runlog.Header{RunID: "r", Status: runlog.StatusOpen, Epoch: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		if _, err := s.PutOp(t.Context(), "r", runlog.StatusOpen, runlog.Op{OpID: fmt.Sprint(i), Epoch: 1}); err != nil {
			t.Fatal(err)
		}
		if err := s.Append(t.Context(), runlog.Event{RunID: "r", ID: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	at := time.Unix(1_900_000_000, 0)
	if done, err := s.Expire(t.Context(), "r", at); err != nil || done {
		t.Fatalf("Expire of an open run = %t, %v", done, err)
	}
	if n := expiring(t, client, s.Table); n != 0 {
		t.Fatalf("%d items of an open run expire", n)
	}
	h.Status = runlog.StatusClosed
	if _, err := s.UpdateHeader(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if done, err := s.Expire(t.Context(), "r", at); err != nil || !done {
			t.Fatalf("Expire of a closed run = %t, %v", done, err)
		}
		if n := expiring(t, client, s.Table); n != 80 {
			t.Fatalf("%d items expire, want 80", n)
		}
	}
	if _, err := client.UpdateTimeToLive(t.Context(), dynamo.TimeToLive(s.Table)); err != nil {
		t.Fatal(err)
	}
}

// expiring counts the items that have an expiry.
func expiring(t *testing.T, client *dynamodb.Client, table string) int {
	t.Helper()
	out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table, FilterExpression: aws.String("expires = :at"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":at": &types.AttributeValueMemberN{Value: "1900000000"}}})
	if err != nil {
		t.Fatal(err)
	}
	return int(out.Count)
}
