package secret

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
)

// parameters is SSM with one parameter.
type parameters struct {
	mu    sync.Mutex
	value *string
	kind  types.ParameterType
	fail  error
}

func (p *parameters) GetParameter(_ context.Context, in *ssm.GetParameterInput, _ ...func(*ssm.Options)) (*ssm.GetParameterOutput, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fail != nil {
		return nil, p.fail
	}
	if p.value == nil {
		return nil, &types.ParameterNotFound{}
	}
	if !aws.ToBool(in.WithDecryption) {
		return nil, errors.New("it comes encrypted")
	}
	return &ssm.GetParameterOutput{Parameter: &types.Parameter{Value: p.value, Type: p.kind}}, nil
}

func (p *parameters) PutParameter(_ context.Context, in *ssm.PutParameterInput, _ ...func(*ssm.Options)) (*ssm.PutParameterOutput, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.value != nil {
		return nil, &types.ParameterAlreadyExists{}
	}
	p.value, p.kind = in.Value, in.Type
	return &ssm.PutParameterOutput{}, nil
}

func TestKeysInSSMAreDrawnOnceAndSharedByAll(t *testing.T) {
	ctx := t.Context()
	shared := &parameters{}
	const n = 8
	var digests [n]string
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			k := &SSMKeys{Client: shared, Name: "/slipway/direct/b"}
			digests[i], _ = k.Digest(ctx, "c", []byte("v"))
		})
	}
	wg.Wait()
	for _, d := range digests {
		if d == "" || d != digests[0] {
			t.Fatalf("the digests are %v", digests)
		}
	}
	one, other := &SSMKeys{Client: shared}, &SSMKeys{Client: shared}
	sealed, err := one.Seal(ctx, []byte("plain"), "c")
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := other.Open(ctx, sealed, "c"); err != nil || !bytes.Equal(plain, []byte("plain")) {
		t.Errorf("%q, %v", plain, err)
	}
	if _, err := other.Open(ctx, sealed, "d"); !errors.Is(err, ErrSealed) {
		t.Errorf("under another context: %v", err)
	}
}

func TestAParameterThatHoldsNoKeysIsRefusedAndAFailureIsNotKept(t *testing.T) {
	ctx := t.Context()
	for _, p := range []*parameters{
		{value: aws.String("AAAA"), kind: types.ParameterTypeSecureString},
		{value: aws.String("AAAA"), kind: types.ParameterTypeString},
	} {
		if _, err := (&SSMKeys{Client: p}).Seal(ctx, nil, "c"); err == nil {
			t.Errorf("a parameter of type %s is taken for keys", p.kind)
		}
	}
	p := &parameters{fail: errors.New("denied")}
	chosen := &Chosen{Choose: func(context.Context) (Sealer, error) { return &SSMKeys{Client: p}, p.fail }}
	if _, err := chosen.Seal(ctx, []byte("x"), "c"); err == nil {
		t.Error("there is no error")
	}
	p.fail = nil
	if _, err := chosen.Seal(ctx, []byte("x"), "c"); err != nil {
		t.Error(err)
	}
}
