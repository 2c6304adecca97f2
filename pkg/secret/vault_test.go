package secret

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/localdb"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/objectstore/local"
)

func objects(t *testing.T) objectstore.Store {
	t.Helper()
	db, err := localdb.Open(filepath.Join(t.TempDir(), "test.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s, err := local.New(db, clock.Real{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fakeKMS wraps data keys by remembering them. It refuses another encryption context, as KMS does.
type fakeKMS struct {
	mu   sync.Mutex
	keys map[string]fakeKey
}

type fakeKey struct {
	plain   []byte
	context string
}

func (f *fakeKMS) GenerateDataKey(_ context.Context, in *kms.GenerateDataKeyInput, _ ...func(*kms.Options)) (*kms.GenerateDataKeyOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	plain, wrapped := make([]byte, 32), make([]byte, 64)
	_, _ = rand.Read(plain)
	_, _ = rand.Read(wrapped)
	if f.keys == nil {
		f.keys = map[string]fakeKey{}
	}
	f.keys[string(wrapped)] = fakeKey{plain, in.EncryptionContext[contextName]}
	return &kms.GenerateDataKeyOutput{Plaintext: plain, CiphertextBlob: wrapped}, nil
}

func (f *fakeKMS) Decrypt(_ context.Context, in *kms.DecryptInput, _ ...func(*kms.Options)) (*kms.DecryptOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key, ok := f.keys[string(in.CiphertextBlob)]
	if !ok || key.context != in.EncryptionContext[contextName] {
		return nil, &types.InvalidCiphertextException{}
	}
	return &kms.DecryptOutput{Plaintext: key.plain}, nil
}

// sealers are the implementations, each with a way to open another one on the same keys.
func sealers(t *testing.T) map[string]func() Sealer {
	path := filepath.Join(t.TempDir(), "vault.key")
	client, store := &fakeKMS{}, objects(t)
	return map[string]func() Sealer{
		"key file": func() Sealer { return &KeyFile{Path: path} },
		"KMS":      func() Sealer { return &KMS{Client: client, KeyID: "alias/slipway", Objects: store} },
	}
}

func TestSealersOpenWhatTheyHaveSealedAndNothingElse(t *testing.T) {
	ctx := context.Background()
	for name, open := range sealers(t) {
		one, other := open(), open()
		plain := []byte("the secret itself")
		sealed, err := one.Seal(ctx, plain, "here")
		if err != nil {
			t.Fatal(name, err)
		}
		again, _ := one.Seal(ctx, plain, "here")
		if bytes.Contains(sealed, plain) || bytes.Equal(sealed, again) {
			t.Errorf("%s: sealed twice it is the same, or readable", name)
		}
		if got, err := other.Open(ctx, sealed, "here"); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%s: %q %v", name, got, err)
		}
		if _, err := other.Open(ctx, sealed, "there"); !errors.Is(err, ErrSealed) {
			t.Errorf("%s: in another context: %v", name, err)
		}
		for i := range sealed {
			changed := bytes.Clone(sealed)
			changed[i] ^= 1
			if _, err := other.Open(ctx, changed, "here"); !errors.Is(err, ErrSealed) {
				t.Fatalf("%s: with byte %d changed: %v", name, i, err)
			}
		}
		for n := range sealed {
			if _, err := other.Open(ctx, sealed[:n], "here"); !errors.Is(err, ErrSealed) {
				t.Fatalf("%s: cut to %d bytes: %v", name, n, err)
			}
		}
		a, err := one.Digest(ctx, "c", []byte("v"))
		if err != nil {
			t.Fatal(name, err)
		}
		if b, _ := other.Digest(ctx, "c", []byte("v")); a != b || len(a) != 64 {
			t.Errorf("%s: digests %s and %s of one value", name, a, b)
		}
		for _, c := range [][2]string{{"c", "w"}, {"d", "v"}, {"cv", ""}, {"", "cv"}} {
			if b, _ := other.Digest(ctx, c[0], []byte(c[1])); a == b {
				t.Errorf("%s: %q has the digest of another value", name, c)
			}
		}
	}
}

func TestTheKeyFileIsItsOwnersAlone(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "vault.key")
	var wg sync.WaitGroup
	digests := make([]string, 16)
	for i := range digests {
		wg.Go(func() {
			digest, err := (&KeyFile{Path: path}).Digest(ctx, "c", []byte("v"))
			if err != nil {
				t.Error(err)
			}
			digests[i] = digest
		})
	}
	wg.Wait()
	for _, d := range digests {
		if d != digests[0] {
			t.Fatal("of several that make the file at once not all use one key")
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info.Mode(), err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("%d files are left", len(entries))
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := (&KeyFile{Path: path}).Seal(ctx, nil, ""); err == nil || !strings.Contains(err.Error(), "may be read by others") {
		t.Errorf("with mode 0640: %v", err)
	}
	if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, []byte("short"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := (&KeyFile{Path: path}).Seal(ctx, nil, ""); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a short file: %v", err)
	}
}

func TestAVaultKeepsSecretsOfItsRunAndIsEmptied(t *testing.T) {
	ctx := context.Background()
	for name, open := range sealers(t) {
		store := objects(t)
		v := &Vault{Objects: store, Sealer: open()}
		handle, err := v.Put(ctx, "run-1", map[string]any{"a": "marker", "n": json.Number("12345678901234567890")})
		if err != nil {
			t.Fatal(name, err)
		}
		other, err := v.Put(ctx, "run-2", "other")
		if err != nil {
			t.Fatal(name, err)
		}
		var got map[string]any
		if err := v.Get(ctx, "run-1", handle, &got); err != nil || got["a"] != "marker" || got["n"] != json.Number("12345678901234567890") {
			t.Errorf("%s: %v %v", name, got, err)
		}
		infos, err := store.List(ctx, "")
		if err != nil || len(infos) < 2 {
			t.Fatal(name, infos, err)
		}
		for _, info := range infos {
			if object, _ := store.Get(ctx, info.Key); bytes.Contains(object.Body, []byte("marker")) || strings.Contains(info.Key, "marker") {
				t.Errorf("%s: %s can be read", name, info.Key)
			}
		}
		// An object that is moved to another run can't be opened there.
		object, err := store.Get(ctx, key("run-1", handle))
		if err != nil {
			t.Fatal(name, err)
		}
		if _, err := store.Put(ctx, key("run-2", handle), object.Body, objectstore.Condition{}); err != nil {
			t.Fatal(name, err)
		}
		if err := v.Get(ctx, "run-2", handle, &got); !errors.Is(err, ErrSealed) {
			t.Errorf("%s: moved: %v", name, err)
		}
		var number int
		if err := v.Get(ctx, "run-2", other, &number); err == nil || strings.Contains(err.Error(), "other") {
			t.Errorf("%s: decoded into something else: %v", name, err)
		}
		for range 2 {
			if err := v.Purge(ctx, "run-1"); err != nil {
				t.Fatal(name, err)
			}
		}
		if err := v.Get(ctx, "run-1", handle, &got); !errors.Is(err, ErrNotInVault) {
			t.Errorf("%s: emptied: %v", name, err)
		}
		var text string
		if err := v.Get(ctx, "run-2", other, &text); err != nil || text != "other" {
			t.Errorf("%s: the other run's: %q %v", name, text, err)
		}
	}
}
