package secret

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/aws/smithy-go"
)

// fakeSource counts its calls.
type fakeSource struct {
	mu         sync.Mutex
	calls      map[string]int
	parameters map[string]Parameter
	secrets    map[string]string
	failing    error
}

func (f *fakeSource) call(what string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls == nil {
		f.calls = map[string]int{}
	}
	f.calls[what]++
	return f.failing
}

func (f *fakeSource) Parameter(_ context.Context, in Where, name, version string) (Parameter, error) {
	what := strings.Join([]string{in.Region, name, version}, " ")
	if err := f.call(what); err != nil {
		return Parameter{}, err
	}
	p, ok := f.parameters[name]
	if !ok {
		return p, ErrNotFound
	}
	return p, nil
}

func (f *fakeSource) SecretString(_ context.Context, in Where, id, stage, version string) (string, error) {
	what := strings.Join([]string{in.Region, id, stage, version}, " ")
	if err := f.call(what); err != nil {
		return "", err
	}
	s, ok := f.secrets[id]
	if !ok {
		return "", ErrNotFound
	}
	return s, nil
}

const secretARN = "arn:aws:secretsmanager:eu-west-1:111111111111:secret:db-AbCdEf"

func newFake() *fakeSource {
	return &fakeSource{
		parameters: map[string]Parameter{"/plain": {Value: "value"}, "/secure": {Value: "hidden", Secure: true}},
		secrets:    map[string]string{"db": `{"user":"admin","port":5432,"pw":"p{{resolve:ssm:/plain}}"}`, "text": "just text", secretARN: "by arn"},
	}
}

func TestReferencesAreResolvedWhereverTheyStand(t *testing.T) {
	source := newFake()
	r := &Resolver{Source: source}
	in := Where{Account: "111111111111", Region: "us-east-1"}
	for text, want := range map[string]string{
		"none":                   "none",
		"{{resolve:ssm:/plain}}": "value",
		"a{{resolve:ssm:/plain:3}}b{{resolve:secretsmanager:text}}c{{resolve:ssm:/plain}}": "avaluebjust textcvalue",
		"{{resolve:ssm-secure:/plain}}":                   "value",
		"{{resolve:secretsmanager:db:SecretString:user}}": "admin",
		"{{resolve:secretsmanager:db:SecretString:port}}": "5432",
		"{{resolve:secretsmanager:" + secretARN + "}}":    "by arn",
		// What a secret holds is not looked through again.
		"{{resolve:secretsmanager:db:SecretString:pw::}}": "p{{resolve:ssm:/plain}}",
	} {
		got, err := r.Resolve(context.Background(), in, map[string]any{"l": []any{text, true, nil}})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if v := got.Value.(map[string]any)["l"].([]any)[0]; v != want {
			t.Errorf("%s becomes %v", text, v)
		}
	}
	for what, n := range source.calls {
		if n != 1 {
			t.Errorf("%s was asked for %d times", what, n)
		}
	}
	if source.calls["eu-west-1 "+secretARN+"  "] != 1 {
		t.Errorf("the ARN's region was not asked: %v", source.calls)
	}
}

func TestOnlySecretsAreMasked(t *testing.T) {
	r := &Resolver{Source: newFake()}
	got, err := r.Resolve(context.Background(), Where{}, []any{"{{resolve:ssm:/plain}}", "{{resolve:ssm:/secure}}", "x{{resolve:secretsmanager:text}}"})
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got.Secrets) != "map[hidden:{{resolve:ssm:/secure}} just text:{{resolve:secretsmanager:text}}]" {
		t.Errorf("%v", got.Secrets)
	}
}

func TestAFailureNamesTheReferenceAndNoValue(t *testing.T) {
	ctx := context.Background()
	source := newFake()
	r := &Resolver{Source: source}
	for text, want := range map[string]error{
		"{{resolve:ssm:/absent}}":                           ErrNotFound,
		"{{resolve:secretsmanager:absent}}":                 ErrNotFound,
		"{{resolve:secretsmanager:db:SecretString:absent}}": ErrUnsuitable,
		"{{resolve:secretsmanager:text:SecretString:user}}": ErrUnsuitable,
	} {
		_, err := r.Resolve(ctx, Where{}, map[string]any{"A": text})
		var named *ReferenceError
		if !errors.Is(err, want) || !errors.As(err, &named) || named.Reference != text || strings.Contains(err.Error(), "just text") || strings.Contains(err.Error(), "5432") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := r.Resolve(ctx, Where{}, "{{resolve:ssm:/plain"); err == nil {
		t.Error("a reference that is not closed is taken")
	}
	if _, err := (&Resolver{}).Resolve(ctx, Where{}, "{{resolve:ssm:/plain}}"); err == nil {
		t.Error("without a source it is resolved")
	}
	// A failure that may pass is not kept, one that will not is.
	r = &Resolver{Source: source}
	for failing, calls := range map[error]int{ErrUnavailable: 2, ErrDenied: 1} {
		name := fmt.Sprintf("{{resolve:ssm:/for-%d}}", calls)
		source.failing, source.calls = failing, nil
		for range 2 {
			if _, err := r.Resolve(ctx, Where{}, name); !errors.Is(err, failing) {
				t.Errorf("%v: %v", failing, err)
			}
		}
		for what, n := range source.calls {
			if n != calls {
				t.Errorf("%v: %s was asked for %d times", failing, what, n)
			}
		}
	}
}

type fakeSSM func(*ssm.GetParameterInput) (*ssm.GetParameterOutput, error)

func (f fakeSSM) GetParameter(_ context.Context, in *ssm.GetParameterInput, _ ...func(*ssm.Options)) (*ssm.GetParameterOutput, error) {
	return f(in)
}

type fakeSecretsManager func(*secretsmanager.GetSecretValueInput) (*secretsmanager.GetSecretValueOutput, error)

func (f fakeSecretsManager) GetSecretValue(_ context.Context, in *secretsmanager.GetSecretValueInput, _ ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error) {
	return f(in)
}

func TestTheServicesAreAskedAsTheyWantToBe(t *testing.T) {
	ctx := context.Background()
	var failing error
	where := Where{Account: "1", Region: "r"}
	a := &AWS{
		SSM: func(_ context.Context, in Where) (SSMAPI, error) {
			if in != where {
				t.Errorf("asked in %v", in)
			}
			return fakeSSM(func(in *ssm.GetParameterInput) (*ssm.GetParameterOutput, error) {
				if failing != nil {
					return nil, failing
				}
				if !aws.ToBool(in.WithDecryption) {
					t.Error("not decrypted")
				}
				kind := ssmtypes.ParameterTypeString
				switch *in.Name {
				case "/secure":
					kind = ssmtypes.ParameterTypeSecureString
				case "/unknown:2":
					kind = "Brand New"
				}
				return &ssm.GetParameterOutput{Parameter: &ssmtypes.Parameter{Value: aws.String("of " + *in.Name), Type: kind}}, nil
			}), nil
		},
		SecretsManager: func(context.Context, Where) (SecretsManagerAPI, error) {
			return fakeSecretsManager(func(in *secretsmanager.GetSecretValueInput) (*secretsmanager.GetSecretValueOutput, error) {
				if failing != nil {
					return nil, failing
				}
				if *in.SecretId == "bytes" {
					return &secretsmanager.GetSecretValueOutput{SecretBinary: []byte("x")}, nil
				}
				return &secretsmanager.GetSecretValueOutput{SecretString: aws.String(fmt.Sprint(*in.SecretId, in.VersionStage == nil, in.VersionId == nil))}, nil
			}), nil
		},
	}
	for name, want := range map[string]Parameter{"/plain": {"of /plain", false}, "/secure": {"of /secure", true}} {
		if got, err := a.Parameter(ctx, where, name, ""); err != nil || got != want {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
	if got, err := a.Parameter(ctx, where, "/unknown", "2"); err != nil || got != (Parameter{"of /unknown:2", true}) {
		t.Errorf("%v %v", got, err)
	}
	if got, err := a.SecretString(ctx, where, "id", "", ""); err != nil || got != "idtrue true" {
		t.Errorf("%q %v", got, err)
	}
	if got, err := a.SecretString(ctx, where, "id", "s", "v"); err != nil || got != "idfalse false" {
		t.Errorf("%q %v", got, err)
	}
	if _, err := a.SecretString(ctx, where, "bytes", "", ""); !errors.Is(err, ErrUnsuitable) {
		t.Errorf("bytes: %v", err)
	}
	for code, want := range map[string]error{
		"ParameterNotFound": ErrNotFound, "ResourceNotFoundException": ErrNotFound, "AccessDeniedException": ErrDenied,
		"ThrottlingException": ErrUnavailable, "": ErrUnavailable,
	} {
		if failing = error(&smithy.GenericAPIError{Code: code}); code == "" {
			failing = errors.New("connection reset")
		}
		if _, err := a.Parameter(ctx, where, "/plain", ""); !errors.Is(err, want) {
			t.Errorf("%s: %v", code, err)
		}
		if _, err := a.SecretString(ctx, where, "id", "", ""); !errors.Is(err, want) {
			t.Errorf("%s: %v", code, err)
		}
	}
}
