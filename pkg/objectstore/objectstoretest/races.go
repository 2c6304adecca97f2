package objectstoretest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
)

const racers = 50

// race starts n calls of f at once and returns what each of them returned.
func race(n int, f func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			<-start
			errs[i] = f(i)
		}()
	}
	close(start)
	wg.Wait()
	return errs
}

// winner returns the only index without an error; every other error must be one of lost.
func winner(t *testing.T, errs []error, lost ...error) int {
	t.Helper()
	won := -1
	for i, err := range errs {
		if err == nil {
			if won >= 0 {
				t.Fatalf("both %d and %d have won", won, i)
			}
			won = i
			continue
		}
		known := false
		for _, l := range lost {
			known = known || errors.Is(err, l)
		}
		if !known {
			t.Fatalf("loser %d: %v", i, err)
		}
	}
	if won < 0 {
		t.Fatal("nobody has won")
	}
	return won
}

func raceCreate(t *testing.T, s objectstore.Store) {
	errs := race(racers, func(i int) error {
		_, err := s.Put(ctx(), "k", []byte(fmt.Sprint("racer ", i)), objectstore.Condition{IfNoneMatch: true})
		return err
	})
	won := winner(t, errs, objectstore.ErrPrecondition)
	wantBody(t, s, "k", fmt.Sprint("racer ", won))
}

func raceUpdate(t *testing.T, s objectstore.Store) {
	etag := put(t, s, "k", "start", objectstore.Condition{})
	errs := race(racers, func(i int) error {
		_, err := s.Put(ctx(), "k", []byte(fmt.Sprint("racer ", i)), objectstore.Condition{IfMatch: etag})
		return err
	})
	won := winner(t, errs, objectstore.ErrPrecondition)
	wantBody(t, s, "k", fmt.Sprint("racer ", won))
}

func increments(t *testing.T, s objectstore.Store) {
	const workers, each = 8, 10
	put(t, s, "counter", "0", objectstore.Condition{})
	errs := race(workers, func(int) error {
		for range each {
			if err := increment(s); err != nil {
				return err
			}
		}
		return nil
	})
	for i, err := range errs {
		if err != nil {
			t.Fatalf("worker %d: %v", i, err)
		}
	}
	wantBody(t, s, "counter", strconv.Itoa(workers*each))
}

func increment(s objectstore.Store) error {
	for {
		o, err := s.Get(ctx(), "counter")
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(string(o.Body))
		if err != nil {
			return err
		}
		_, err = s.Put(ctx(), "counter", []byte(strconv.Itoa(n+1)), objectstore.Condition{IfMatch: o.ETag})
		if !errors.Is(err, objectstore.ErrPrecondition) {
			return err
		}
	}
}

func raceDelete(t *testing.T, s objectstore.Store) {
	etag := put(t, s, "k", "start", objectstore.Condition{})
	errs := race(racers, func(i int) error {
		if i%2 == 0 {
			return s.Delete(ctx(), "k", objectstore.Condition{IfMatch: etag})
		}
		_, err := s.Put(ctx(), "k", []byte("updated"), objectstore.Condition{IfMatch: etag})
		return err
	})
	if won := winner(t, errs, objectstore.ErrPrecondition, objectstore.ErrNotFound); won%2 == 1 {
		wantBody(t, s, "k", "updated")
		return
	}
	_, err := s.Get(ctx(), "k")
	wantErr(t, err, objectstore.ErrNotFound)
}

func ownBody(t *testing.T, s objectstore.Store) {
	body := []byte("original")
	if _, err := s.Put(ctx(), "k", body, objectstore.Condition{}); err != nil {
		t.Fatal(err)
	}
	copy(body, "changed!")
	o := wantBody(t, s, "k", "original")
	copy(o.Body, "changed!")
	wantBody(t, s, "k", "original")
}

func ended(t *testing.T, s objectstore.Store) {
	put(t, s, "k", "x", objectstore.Condition{})
	over, cancel := context.WithCancel(ctx())
	cancel()
	if _, err := s.Get(over, "k"); err == nil {
		t.Fatal("Get answered under an ended context")
	}
	if _, err := s.Put(over, "k", []byte("y"), objectstore.Condition{}); err == nil {
		t.Fatal("Put answered under an ended context")
	}
	wantBody(t, s, "k", "x")
}
