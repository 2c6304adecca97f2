package secret

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// KeyFile seals with keys in a file that only its owner may read: the plane of --local. The file is made when it
// is first needed.
type KeyFile struct {
	Path string

	once sync.Once
	keys []byte
	err  error
}

var _ Sealer = (*KeyFile)(nil)

// Seal implements Sealer.
func (k *KeyFile) Seal(_ context.Context, plain []byte, context string) ([]byte, error) {
	keys, err := k.load()
	if err != nil {
		return nil, err
	}
	return seal(keys[:keySize], plain, context)
}

// Open implements Sealer.
func (k *KeyFile) Open(_ context.Context, sealed []byte, context string) ([]byte, error) {
	keys, err := k.load()
	if err != nil {
		return nil, err
	}
	return open(keys[:keySize], sealed, context)
}

// Digest implements Sealer.
func (k *KeyFile) Digest(_ context.Context, context string, value []byte) (string, error) {
	keys, err := k.load()
	if err != nil {
		return "", err
	}
	return digest(keys[keySize:], context, value), nil
}

// load reads the keys, or makes them. Of several processes that make the file at once one wins, and all use its
// keys: the file appears under its name complete, by a hard link, which fails where a file stands already.
func (k *KeyFile) load() ([]byte, error) {
	k.once.Do(func() { k.keys, k.err = k.read() })
	return k.keys, k.err
}

func (k *KeyFile) read() ([]byte, error) {
	keys, err := readKeys(k.Path)
	if !errors.Is(err, fs.ErrNotExist) {
		return keys, err
	}
	fresh := make([]byte, 2*keySize)
	if _, err := rand.Read(fresh); err != nil {
		return nil, fmt.Errorf("making the key file: %w", err)
	}
	// CreateTemp makes the file with mode 0600.
	file, err := os.CreateTemp(filepath.Dir(k.Path), filepath.Base(k.Path)+".*")
	if err != nil {
		return nil, fmt.Errorf("making the key file: %w", err)
	}
	defer os.Remove(file.Name())
	_, err = file.Write(fresh)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return nil, fmt.Errorf("writing the key file: %w", err)
	}
	if err := os.Link(file.Name(), k.Path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("making the key file: %w", err)
	}
	return readKeys(k.Path)
}

func readKeys(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading the key file: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the key file %s may be read by others: its mode is %v, not 0600", path, info.Mode().Perm())
	}
	keys, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the key file: %w", err)
	}
	if len(keys) != 2*keySize {
		return nil, fmt.Errorf("the key file %s is damaged: it has %d bytes, not %d", path, len(keys), 2*keySize)
	}
	return keys, nil
}
