package macro_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/localdb"
	"github.com/slipway-cdk/slipway/pkg/macro"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/objectstore/local"
)

func TestABucketGivesTheURLOfWhatItStores(t *testing.T) {
	db, err := localdb.Open(filepath.Join(t.TempDir(), "objects.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	store, err := local.New(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	b := macro.Bucket{Store: store, Name: "state.bucket", Region: "cn-north-1", URLSuffix: "amazonaws.com.cn", Prefix: "team/"}
	url, err := b.Put(ctx, "slipway/macros/x.json", []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	// Path style: a bucket's name may hold dots, which no certificate covers.
	if want := "https://s3.cn-north-1.amazonaws.com.cn/state.bucket/team/slipway/macros/x.json"; url != want {
		t.Errorf("the URL is %s, want %s", url, want)
	}
	if obj, err := store.Get(ctx, "slipway/macros/x.json"); err != nil || string(obj.Body) != "{}" {
		t.Fatalf("got %q, %v", obj.Body, err)
	}
	if err := b.Delete(ctx, "slipway/macros/x.json"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Get(ctx, "slipway/macros/x.json"); !errors.Is(err, objectstore.ErrNotFound) {
		t.Fatalf("it is still there: %v", err)
	}
	if err := b.Delete(ctx, "slipway/macros/x.json"); err != nil {
		t.Fatalf("deleting it twice: %v", err)
	}
}
