package secret

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
)

// KMSAPI is the part of the KMS client that is used.
type KMSAPI interface {
	GenerateDataKey(context.Context, *kms.GenerateDataKeyInput, ...func(*kms.Options)) (*kms.GenerateDataKeyOutput, error)
	Decrypt(context.Context, *kms.DecryptInput, ...func(*kms.Options)) (*kms.DecryptOutput, error)
}

var _ KMSAPI = (*kms.Client)(nil)

// KMS seals each value with a data key of its own, which KMS encrypts and which goes before the ciphertext
// (https://docs.aws.amazon.com/kms/latest/developerguide/data-keys.html). The context is the encryption context
// too, so the trail of KMS tells what was opened. Digests are made with a key that is drawn once and kept,
// encrypted, beside the stacks' state.
type KMS struct {
	Client KMSAPI
	// KeyID names the KMS key.
	KeyID string
	// Objects keeps the digest key.
	Objects objectstore.Store

	mu        sync.Mutex
	digestKey []byte
}

var _ Sealer = (*KMS)(nil)

// digestKeyObject is where the encrypted digest key stands.
const digestKeyObject = "slipway/keys/digest"

const contextName = "slipway:context"

// Seal implements Sealer.
func (k *KMS) Seal(ctx context.Context, plain []byte, context string) ([]byte, error) {
	key, wrapped, err := k.dataKey(ctx, context)
	if err != nil {
		return nil, err
	}
	sealed, err := seal(key, plain, context)
	if err != nil {
		return nil, err
	}
	out := binary.BigEndian.AppendUint16(nil, uint16(len(wrapped)))
	return append(append(out, wrapped...), sealed...), nil
}

// Open implements Sealer.
func (k *KMS) Open(ctx context.Context, sealed []byte, context string) ([]byte, error) {
	if len(sealed) < 2 {
		return nil, ErrSealed
	}
	length := int(binary.BigEndian.Uint16(sealed))
	if len(sealed) < 2+length {
		return nil, ErrSealed
	}
	key, err := k.unwrap(ctx, sealed[2:2+length], context)
	if err != nil {
		return nil, err
	}
	return open(key, sealed[2+length:], context)
}

// Digest implements Sealer.
func (k *KMS) Digest(ctx context.Context, context string, value []byte) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.digestKey == nil {
		key, err := k.loadDigestKey(ctx)
		if err != nil {
			return "", err
		}
		k.digestKey = key
	}
	return digest(k.digestKey, context, value), nil
}

// loadDigestKey reads the key, or makes it: the first writer's stands.
func (k *KMS) loadDigestKey(ctx context.Context) ([]byte, error) {
	obj, err := k.Objects.Get(ctx, digestKeyObject)
	if errors.Is(err, objectstore.ErrNotFound) {
		_, wrapped, keyErr := k.dataKey(ctx, digestKeyObject)
		if keyErr != nil {
			return nil, keyErr
		}
		if _, err = k.Objects.Put(ctx, digestKeyObject, wrapped, objectstore.Condition{IfNoneMatch: true}); err != nil && !errors.Is(err, objectstore.ErrPrecondition) {
			return nil, fmt.Errorf("storing the digest key: %w", err)
		}
		obj, err = k.Objects.Get(ctx, digestKeyObject)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the digest key: %w", err)
	}
	return k.unwrap(ctx, obj.Body, digestKeyObject)
}

func (k *KMS) dataKey(ctx context.Context, context string) (key, wrapped []byte, err error) {
	out, err := k.Client.GenerateDataKey(ctx, &kms.GenerateDataKeyInput{
		KeyId: aws.String(k.KeyID), KeySpec: types.DataKeySpecAes256,
		EncryptionContext: map[string]string{contextName: context},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("asking KMS for a data key: %w", err)
	}
	return out.Plaintext, out.CiphertextBlob, nil
}

func (k *KMS) unwrap(ctx context.Context, wrapped []byte, context string) ([]byte, error) {
	out, err := k.Client.Decrypt(ctx, &kms.DecryptInput{
		KeyId: aws.String(k.KeyID), CiphertextBlob: wrapped, EncryptionContext: map[string]string{contextName: context},
	})
	var invalid *types.InvalidCiphertextException
	if errors.As(err, &invalid) {
		return nil, ErrSealed
	}
	if err != nil {
		return nil, fmt.Errorf("decrypting a data key with KMS: %w", err)
	}
	return out.Plaintext, nil
}
