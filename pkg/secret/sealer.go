package secret

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// Sealer encrypts what is in a vault, and digests secret values so that a change can be seen and nothing else.
type Sealer interface {
	// Seal encrypts a value. The context is authenticated with it: Open needs the same one.
	Seal(ctx context.Context, plain []byte, context string) ([]byte, error)
	// Open decrypts what Seal has made. ErrSealed when it was made with another key or context, or was changed.
	Open(ctx context.Context, sealed []byte, context string) ([]byte, error)
	// Digest returns a keyed digest (HMAC-SHA-256, in hex) of a value. Equal values under one context have
	// equal digests, for as long as the key is kept; under another context they have not.
	Digest(ctx context.Context, context string, value []byte) (string, error)
}

// ErrSealed: what is in the vault can't be opened.
var ErrSealed = errors.New("the sealed value can't be opened")

// keySize is the size of the AES-256 and of the HMAC key, in bytes.
const keySize = 32

// seal encrypts with AES-256-GCM: the nonce, 12 random bytes, stands before the ciphertext.
func seal(key, plain []byte, context string) ([]byte, error) {
	gcm, err := newGCM(key)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, gcm.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, fmt.Errorf("drawing a nonce: %w", err)
	}
	return gcm.Seal(nonce, nonce, plain, []byte(context)), nil
}

func open(key, sealed []byte, context string) ([]byte, error) {
	gcm, err := newGCM(key)
	if err != nil {
		return nil, err
	}
	if len(sealed) < gcm.NonceSize() {
		return nil, ErrSealed
	}
	plain, err := gcm.Open(nil, sealed[:gcm.NonceSize()], sealed[gcm.NonceSize():], []byte(context))
	if err != nil {
		return nil, ErrSealed
	}
	return plain, nil
}

func newGCM(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("making the cipher: %w", err)
	}
	return cipher.NewGCM(block)
}

// digest is unambiguous: the context's length goes before it.
func digest(key []byte, context string, value []byte) string {
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "%d:%s", len(context), context)
	h.Write(value)
	return hex.EncodeToString(h.Sum(nil))
}
