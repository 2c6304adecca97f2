package secret

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
)

// Vault keeps the secrets of one root run and of the runs below it, sealed, under opaque handles. It is emptied
// when the root run ends: nothing of it outlives the run.
type Vault struct {
	Objects objectstore.Store
	Sealer  Sealer
}

// ErrNotInVault: the vault has nothing under the handle, because it was emptied or never had it.
var ErrNotInVault = errors.New("the run vault does not have it")

// runsPrefix is before the objects of every run.
const runsPrefix = "slipway/runs/"

func prefix(root string) string      { return runsPrefix + root + "/vault/" }
func key(root, handle string) string { return prefix(root) + handle }

// Put seals a JSON value and returns its handle, which tells nothing about it.
func (v *Vault) Put(ctx context.Context, root string, value any) (handle string, err error) {
	plain, err := encode(value)
	if err != nil {
		return "", fmt.Errorf("encoding for the vault of run %s: %w", root, err)
	}
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", fmt.Errorf("drawing a handle: %w", err)
	}
	handle = hex.EncodeToString(random[:])
	sealed, err := v.Sealer.Seal(ctx, plain, key(root, handle))
	if err != nil {
		return "", fmt.Errorf("sealing for the vault of run %s: %w", root, err)
	}
	if _, err := v.Objects.Put(ctx, key(root, handle), sealed, objectstore.Condition{IfNoneMatch: true}); err != nil {
		return "", fmt.Errorf("writing to the vault of run %s: %w", root, err)
	}
	return handle, nil
}

// Get opens what is under a handle; numbers in untyped members become json.Number. ErrNotInVault when there is
// nothing, ErrSealed when it can't be opened.
func (v *Vault) Get(ctx context.Context, root, handle string, into any) error {
	obj, err := v.Objects.Get(ctx, key(root, handle))
	if errors.Is(err, objectstore.ErrNotFound) {
		return fmt.Errorf("reading from the vault of run %s: %w", root, ErrNotInVault)
	}
	if err != nil {
		return fmt.Errorf("reading from the vault of run %s: %w", root, err)
	}
	plain, err := v.Sealer.Open(ctx, obj.Body, key(root, handle))
	if err != nil {
		return fmt.Errorf("opening from the vault of run %s: %w", root, err)
	}
	dec := json.NewDecoder(bytes.NewReader(plain))
	dec.UseNumber()
	if dec.Decode(into) != nil {
		// The decoder's error could quote what it has read.
		return fmt.Errorf("decoding from the vault of run %s: it is not what was expected", root)
	}
	return nil
}

// Purge empties the vault of a root run. It may be repeated.
func (v *Vault) Purge(ctx context.Context, root string) error {
	infos, err := v.Objects.List(ctx, prefix(root))
	if err != nil {
		return fmt.Errorf("listing the vault of run %s: %w", root, err)
	}
	for _, info := range infos {
		if err := v.Objects.Delete(ctx, info.Key, objectstore.Condition{}); err != nil {
			return fmt.Errorf("emptying the vault of run %s: %w", root, err)
		}
	}
	return nil
}

// encode is JSON without the escapes for HTML.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
