package lookup

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLocalAnswersAvailabilityZones(t *testing.T) {
	got, err := Local().Lookup(context.Background(), Query{Kind: "availability-zones", Region: "eu-north-1"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]any{"eu-north-1a", "eu-north-1b", "eu-north-1c"}, got); d != "" {
		t.Error(d)
	}
}

func TestLocalNeedsARegion(t *testing.T) {
	_, err := Local().Lookup(context.Background(), Query{Kind: "availability-zones"})
	if err == nil || !strings.Contains(err.Error(), "--region") {
		t.Errorf("error %v", err)
	}
}

func TestLocalSaysThatOtherLookupsNeedAnAccount(t *testing.T) {
	r := Local()
	for _, kind := range Kinds() {
		if slices.Contains(r.Kinds(), kind) {
			continue
		}
		_, err := r.Lookup(context.Background(), Query{Kind: kind, Region: "eu-west-1"})
		var u *UnavailableError
		if !errors.As(err, &u) || u.Kind != kind || !strings.Contains(err.Error(), "--local") {
			t.Errorf("%s: error %v", kind, err)
		}
	}
	if _, err := r.Lookup(context.Background(), Query{Kind: "horoscope"}); err == nil || strings.Contains(err.Error(), "account") {
		t.Errorf("an unknown kind: error %v", err)
	}
}

func TestRegistryNamesTheKindOfAFailedLookup(t *testing.T) {
	var r Registry
	cause := errors.New("nothing found")
	r.Register("ssm", Func(func(context.Context, Query) (any, error) { return nil, cause }))
	_, err := r.Lookup(context.Background(), Query{Kind: "ssm"})
	if !errors.Is(err, cause) || !strings.HasPrefix(err.Error(), "ssm lookup") {
		t.Errorf("error %v", err)
	}
	if _, err := r.Lookup(context.Background(), Query{Kind: "ami"}); err == nil {
		t.Error("a kind without provider was answered")
	}
}
