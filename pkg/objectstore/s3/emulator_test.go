//go:build emulators

package s3_test

import (
	"crypto/rand"
	"encoding/hex"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/objectstore/objectstoretest"
	"github.com/slipway-cdk/slipway/pkg/objectstore/s3"
	"github.com/slipway-cdk/slipway/test/emulators"
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
	leaveOut := emulators.LeaveOut(t, nil)
	objectstoretest.Run(t, func(t *testing.T) objectstore.Store {
		leaveOut(t)
		return &s3.Store{Client: client, Bucket: bucket(t, client)}
	})
}
