//go:build emulators

package s3_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/emulators"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/objectstore/objectstoretest"
	"github.com/slipway-cdk/slipway/pkg/objectstore/s3"
)

// bucket makes an empty bucket of its own for a test.
func bucket(t *testing.T, client *sdk.Client) string {
	t.Helper()
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	name := "slipway-test-" + hex.EncodeToString(b[:])
	if _, err := client.CreateBucket(t.Context(), &sdk.CreateBucketInput{Bucket: &name}); err != nil {
		t.Fatalf("creating a bucket: %v", err)
	}
	return name
}

func TestTheS3StoreKeepsTheContractOnAnEmulator(t *testing.T) {
	client := s3.NewClient(emulators.Config(t), "")
	leaveOut := emulators.LeaveOut(t, capabilities(t, client))
	t.Run("plain", func(t *testing.T) {
		objectstoretest.Run(t, func(t *testing.T) objectstore.Store {
			leaveOut(t)
			return &s3.Store{Client: client, Bucket: bucket(t, client)}
		})
	})
	t.Run("with conflicts", func(t *testing.T) {
		cfg := emulators.Config(t)
		cfg.HTTPClient = &http.Client{Transport: &conflicting{next: cfg.HTTPClient.(*http.Client).Transport}}
		troubled := s3.NewClient(cfg, "")
		objectstoretest.Run(t, func(t *testing.T) objectstore.Store {
			leaveOut(t)
			return &s3.Store{Client: troubled, Bucket: bucket(t, client), Clock: clock.Scaled{Speed: 50}}
		})
	})
}

// conflicting refuses every seventh conditional request as S3 refuses one that meets another in flight, which
// no emulator does. More of them, and one racer would now and then be the unlucky one in all its attempts.
type conflicting struct {
	next http.RoundTripper
	n    atomic.Int64
}

func (c *conflicting) RoundTrip(r *http.Request) (*http.Response, error) {
	conditional := r.Header.Get("If-Match") != "" || r.Header.Get("If-None-Match") != ""
	if !conditional || c.n.Add(1)%7 != 0 {
		return c.next.RoundTrip(r)
	}
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	return &http.Response{
		StatusCode: http.StatusConflict, Header: http.Header{}, Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(strings.NewReader("<Error><Code>ConditionalRequestConflict</Code></Error>")),
	}, nil
}

func TestADeleteMarkerCountsAsAbsent(t *testing.T) {
	client := s3.NewClient(emulators.Config(t), "")
	name := bucket(t, client)
	_, err := client.PutBucketVersioning(t.Context(), &sdk.PutBucketVersioningInput{
		Bucket: &name, VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &s3.Store{Client: client, Bucket: name}
	etag, err := s.Put(t.Context(), "k", []byte("x"), objectstore.Condition{})
	if err == nil {
		err = s.Delete(t.Context(), "k", objectstore.Condition{IfMatch: etag})
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), "k"); !errors.Is(err, objectstore.ErrNotFound) {
		t.Errorf("Get: %v", err)
	}
	if _, err := s.Put(t.Context(), "k", nil, objectstore.Condition{IfMatch: etag}); !errors.Is(err, objectstore.ErrNotFound) {
		t.Errorf("Put over it: %v", err)
	}
	if err := s.Delete(t.Context(), "k", objectstore.Condition{IfMatch: etag}); !errors.Is(err, objectstore.ErrNotFound) {
		t.Errorf("Delete of it: %v", err)
	}
	if infos, err := s.List(t.Context(), ""); err != nil || len(infos) != 0 {
		t.Errorf("List = %v, %v", infos, err)
	}
	if _, err := s.Put(t.Context(), "k", []byte("y"), objectstore.Condition{IfNoneMatch: true}); err != nil {
		t.Errorf("a first Put: %v", err)
	}
}

func TestABucketThatIsNotThereIsAFailure(t *testing.T) {
	s := &s3.Store{Client: s3.NewClient(emulators.Config(t), ""), Bucket: "slipway-test-absent"}
	_, getErr := s.Get(t.Context(), "k")
	_, headErr := s.Head(t.Context(), "k")
	_, putErr := s.Put(t.Context(), "k", nil, objectstore.Condition{IfMatch: `"e"`})
	for _, err := range []error{getErr, headErr, putErr, s.Delete(t.Context(), "k", objectstore.Condition{})} {
		if err == nil || errors.Is(err, objectstore.ErrNotFound) {
			t.Errorf("error is %v", err)
		}
	}
}

// capabilities are what S3 does and the suite, or the store, relies on.
func capabilities(t *testing.T, client *sdk.Client) []emulators.Capability {
	name := bucket(t, client)
	other := aws.String(`"0123456789abcdef0123456789abcdef"`)
	put := func(ctx context.Context, key string) error {
		_, err := client.PutObject(ctx, &sdk.PutObjectInput{Bucket: &name, Key: &key, Body: strings.NewReader("x")})
		return err
	}
	code := func(err error) string {
		var api smithy.APIError
		if errors.As(err, &api) {
			return api.ErrorCode()
		}
		return fmt.Sprint(err)
	}
	races := []string{"of fifty concurrent first writes one wins"}
	changes := []string{"of fifty concurrent updates of one version one wins", "concurrent increments lose nothing"}
	return []emulators.Capability{
		{Name: "S3: If-None-Match on PutObject", Cases: append(races,
			"IfNoneMatch puts only where nothing stands", "a refused write changes nothing"),
			Probe: func(ctx context.Context) (string, error) {
				if err := put(ctx, "none"); err != nil {
					return "", err
				}
				_, err := client.PutObject(ctx, &sdk.PutObjectInput{Bucket: &name, Key: aws.String("none"), IfNoneMatch: aws.String("*")})
				return emulators.Unless(code(err) == "PreconditionFailed", "a second first write: "+code(err)), nil
			}},
		{Name: "S3: If-Match on PutObject", Cases: append(changes, "IfMatch puts only over the version that was read"),
			Probe: func(ctx context.Context) (string, error) {
				if err := put(ctx, "match"); err != nil {
					return "", err
				}
				_, err := client.PutObject(ctx, &sdk.PutObjectInput{Bucket: &name, Key: aws.String("match"), IfMatch: other})
				return emulators.Unless(code(err) == "PreconditionFailed", "a write over another version: "+code(err)), nil
			}},
		{Name: "S3: If-Match on DeleteObject",
			Cases: []string{"a conditional delete removes only the version that was read", "of a concurrent delete and update of one version one wins", "a refused write changes nothing"},
			Probe: func(ctx context.Context) (string, error) {
				if err := put(ctx, "delete"); err != nil {
					return "", err
				}
				_, err := client.DeleteObject(ctx, &sdk.DeleteObjectInput{Bucket: &name, Key: aws.String("delete"), IfMatch: other})
				return emulators.Unless(code(err) == "PreconditionFailed", "a delete of another version: "+code(err)), nil
			}},
		{Name: "S3: ExpectedBucketOwner is checked", Probe: func(ctx context.Context) (string, error) {
			_, err := client.ListObjectsV2(ctx, &sdk.ListObjectsV2Input{Bucket: &name, ExpectedBucketOwner: aws.String("999999999999")})
			return emulators.Unless(code(err) == "AccessDenied", "with a wrong owner: "+code(err)), nil
		}},
		{Name: "S3: 409 ConditionalRequestConflict between writes in flight", Probe: func(ctx context.Context) (string, error) {
			var seen atomic.Bool
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					_, err := client.PutObject(ctx, &sdk.PutObjectInput{Bucket: &name, Key: aws.String("busy"), IfNoneMatch: aws.String("*")})
					if code(err) == "ConditionalRequestConflict" {
						seen.Store(true)
					}
				})
			}
			wg.Wait()
			return emulators.Unless(seen.Load(), "none in 50 concurrent first writes (injected by the suite)"), nil
		}},
	}
}
