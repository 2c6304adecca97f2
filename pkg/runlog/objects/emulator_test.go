//go:build emulators

package objects_test

import (
	"crypto/rand"
	"encoding/hex"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/slipway-cdk/slipway/pkg/emulators"
	"github.com/slipway-cdk/slipway/pkg/objectstore/s3"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/runlog/objects"
	"github.com/slipway-cdk/slipway/pkg/runlog/runlogtest"
)

func TestTheRunLogInAnS3BucketKeepsTheContractOnAnEmulator(t *testing.T) {
	client := s3.NewClient(emulators.Config(t), "")
	runlogtest.Run(t, func(t *testing.T) runlog.Store {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails
		name := "slipway-test-" + hex.EncodeToString(b[:])
		if _, err := client.CreateBucket(t.Context(), &sdk.CreateBucketInput{Bucket: &name}); err != nil {
			t.Fatalf("creating a bucket: %v", err)
		}
		return &objects.Store{Objects: &s3.Store{Client: client, Bucket: name}}
	})
}
