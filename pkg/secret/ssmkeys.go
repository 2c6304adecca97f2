package secret

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
)

// SSMKeysAPI is the part of the SSM client that SSMKeys uses.
type SSMKeysAPI interface {
	GetParameter(context.Context, *ssm.GetParameterInput, ...func(*ssm.Options)) (*ssm.GetParameterOutput, error)
	PutParameter(context.Context, *ssm.PutParameterInput, ...func(*ssm.Options)) (*ssm.PutParameterOutput, error)
}

var _ SSMKeysAPI = (*ssm.Client)(nil)

// SSMKeys seals with keys in an SSM parameter, a SecureString: what everybody shares who deploys with --direct into one
// state bucket. The parameter is made when it is first needed.
//
// The keys are not in the state bucket itself, where whoever may read the sealed values would have them too, and not on
// one machine, where nobody else could settle its runs or compare the digests that they leave. A SecureString costs
// nothing, is encrypted under the account's aws/ssm key, and who reads it is in the trail of KMS.
type SSMKeys struct {
	Client SSMKeysAPI
	// Name is the parameter's.
	Name string

	mu   sync.Mutex
	keys []byte
}

var _ Sealer = (*SSMKeys)(nil)

// Seal implements Sealer.
func (k *SSMKeys) Seal(ctx context.Context, plain []byte, context string) ([]byte, error) {
	keys, err := k.load(ctx)
	if err != nil {
		return nil, err
	}
	return seal(keys[:keySize], plain, context)
}

// Open implements Sealer.
func (k *SSMKeys) Open(ctx context.Context, sealed []byte, context string) ([]byte, error) {
	keys, err := k.load(ctx)
	if err != nil {
		return nil, err
	}
	return open(keys[:keySize], sealed, context)
}

// Digest implements Sealer.
func (k *SSMKeys) Digest(ctx context.Context, context string, value []byte) (string, error) {
	keys, err := k.load(ctx)
	if err != nil {
		return "", err
	}
	return digest(keys[keySize:], context, value), nil
}

// load reads the keys, or makes them. Of several that make them at once one wins, and all use its keys. A failure is
// not kept.
func (k *SSMKeys) load(ctx context.Context) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keys != nil {
		return k.keys, nil
	}
	keys, err := k.read(ctx)
	var absent *types.ParameterNotFound
	if errors.As(err, &absent) {
		if err = k.draw(ctx); err == nil {
			keys, err = k.read(ctx)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the keys in SSM parameter %s: %w", k.Name, err)
	}
	k.keys = keys
	return keys, nil
}

func (k *SSMKeys) read(ctx context.Context) ([]byte, error) {
	out, err := k.Client.GetParameter(ctx, &ssm.GetParameterInput{Name: &k.Name, WithDecryption: aws.Bool(true)})
	if err != nil {
		return nil, fmt.Errorf("reading them: %w", err)
	}
	if out.Parameter == nil || out.Parameter.Type != types.ParameterTypeSecureString {
		return nil, errors.New("the parameter is no SecureString")
	}
	keys, err := base64.StdEncoding.DecodeString(aws.ToString(out.Parameter.Value))
	if err != nil || len(keys) != 2*keySize {
		// Neither error nor value is quoted: it may be a key.
		return nil, errors.New("the parameter does not hold keys of Slipway")
	}
	return keys, nil
}

func (k *SSMKeys) draw(ctx context.Context) error {
	fresh := make([]byte, 2*keySize)
	if _, err := rand.Read(fresh); err != nil {
		return fmt.Errorf("drawing them: %w", err)
	}
	_, err := k.Client.PutParameter(ctx, &ssm.PutParameterInput{
		Name: &k.Name, Type: types.ParameterTypeSecureString, Overwrite: aws.Bool(false),
		Value:       aws.String(base64.StdEncoding.EncodeToString(fresh)),
		Description: aws.String("Slipway: keys for the secrets of runs that are deployed with --direct"),
	})
	var exists *types.ParameterAlreadyExists
	if err != nil && !errors.As(err, &exists) {
		return fmt.Errorf("storing them: %w", err)
	}
	return nil
}

// Chosen is a Sealer that is chosen when it is first needed, because to choose takes a look at the account. A failure
// is not kept.
type Chosen struct {
	Choose func(context.Context) (Sealer, error)

	mu     sync.Mutex
	sealer Sealer
}

var _ Sealer = (*Chosen)(nil)

func (c *Chosen) chosen(ctx context.Context) (Sealer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sealer == nil {
		sealer, err := c.Choose(ctx)
		if err != nil {
			return nil, fmt.Errorf("choosing the key for secrets: %w", err)
		}
		c.sealer = sealer
	}
	return c.sealer, nil
}

// Seal implements Sealer.
func (c *Chosen) Seal(ctx context.Context, plain []byte, context string) ([]byte, error) {
	s, err := c.chosen(ctx)
	if err != nil {
		return nil, err
	}
	return s.Seal(ctx, plain, context)
}

// Open implements Sealer.
func (c *Chosen) Open(ctx context.Context, sealed []byte, context string) ([]byte, error) {
	s, err := c.chosen(ctx)
	if err != nil {
		return nil, err
	}
	return s.Open(ctx, sealed, context)
}

// Digest implements Sealer.
func (c *Chosen) Digest(ctx context.Context, context string, value []byte) (string, error) {
	s, err := c.chosen(ctx)
	if err != nil {
		return "", err
	}
	return s.Digest(ctx, context, value)
}
