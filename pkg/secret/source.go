package secret

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
)

// Errors of a Source, which never quote a value.
var (
	// ErrNotFound: there is no such parameter, secret or version.
	ErrNotFound = errors.New("it does not exist")
	// ErrDenied: the stack's role may not read it.
	ErrDenied = errors.New("access is denied")
	// ErrUnavailable: the service did not answer, or asked to slow down. The same call may succeed later.
	ErrUnavailable = errors.New("the service did not answer")
	// ErrUnsuitable: it exists and is not what the reference needs: a secret without text, without the JSON key.
	ErrUnsuitable = errors.New("it does not have what the reference names")
)

// Where is the account and region that a reference is resolved in: the stack's.
type Where struct{ Account, Region string }

// Parameter is what an SSM parameter holds.
type Parameter struct {
	Value string
	// Secure: its type is SecureString, so the value is a secret.
	Secure bool
}

// Source reads what dynamic references name, under the stack's role. Errors wrap ErrNotFound, ErrDenied or
// ErrUnavailable where that is known.
type Source interface {
	// Parameter reads an SSM parameter, decrypted; version "" is the latest.
	Parameter(ctx context.Context, in Where, name, version string) (Parameter, error)
	// SecretString reads the text of a secret; with neither a stage nor a version, of AWSCURRENT.
	SecretString(ctx context.Context, in Where, id, stage, version string) (string, error)
}

// ReferenceError is a dynamic reference that could not be resolved.
type ReferenceError struct {
	// Reference is its text, which holds no secret.
	Reference string
	Err       error
}

// Error implements error.
func (e *ReferenceError) Error() string {
	return fmt.Sprintf("the dynamic reference %s can't be resolved: %v", e.Reference, e.Err)
}

// Unwrap returns the cause.
func (e *ReferenceError) Unwrap() error { return e.Err }

// Resolver resolves dynamic references
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/dynamic-references.html). It asks for each
// parameter and secret once. It is safe for concurrent use; make one for each run, so that a run sees one value.
type Resolver struct {
	Source Source

	mu    sync.Mutex
	cache map[string]*cached
}

type cached struct {
	once  sync.Once
	value Parameter
	err   error
}

// Resolved is a value whose dynamic references were replaced.
type Resolved struct {
	Value any
	// Secrets are the values that must not be shown, with the reference that stands for each: what came from
	// Secrets Manager, ssm-secure, and parameters of the type SecureString (reference §7.6).
	Secrets map[string]string
}

// HasReference reports whether a value holds a dynamic reference anywhere.
func HasReference(v any) bool {
	found := false
	Leaves(v, func(leaf any) any {
		s, ok := leaf.(string)
		found = found || ok && strings.Contains(s, "{{resolve:")
		return leaf
	})
	return found
}

// Resolve replaces every dynamic reference in a value, any number of them in one string. The error is a
// *ReferenceError for the first one that can't be resolved.
func (r *Resolver) Resolve(ctx context.Context, in Where, v any) (Resolved, error) {
	out := Resolved{Secrets: map[string]string{}}
	refs, diags := intrinsic.DynamicReferences(v, "Properties")
	if err := diags.Err(); err != nil {
		return out, err
	}
	var pairs []string
	for _, ref := range refs {
		value, err := r.value(ctx, in, ref)
		if err != nil {
			return out, &ReferenceError{Reference: ref.Text, Err: err}
		}
		pairs = append(pairs, ref.Text, value.Value)
		if value.Secure {
			out.Secrets[value.Value] = ref.Text
		}
	}
	if len(pairs) == 0 {
		out.Value = v
		return out, nil
	}
	replacer := strings.NewReplacer(pairs...)
	out.Value = Leaves(v, func(leaf any) any {
		if s, ok := leaf.(string); ok {
			return replacer.Replace(s)
		}
		return leaf
	})
	return out, nil
}

func (r *Resolver) value(ctx context.Context, in Where, ref intrinsic.DynamicReference) (Parameter, error) {
	if r.Source == nil {
		return Parameter{}, errors.New("there is nothing here that can resolve it")
	}
	if arn := strings.SplitN(ref.Name, ":", 6); len(arn) == 6 && arn[0] == "arn" {
		in.Region = arn[3]
	}
	isSecret := ref.Service == "secretsmanager"
	whole, err := r.once(strings.Join([]string{in.Account, in.Region, strconv.FormatBool(isSecret), ref.Name, ref.Stage, ref.Version}, "\x00"), func() (Parameter, error) {
		if isSecret {
			text, err := r.Source.SecretString(ctx, in, ref.Name, ref.Stage, ref.Version)
			return Parameter{Value: text, Secure: true}, err
		}
		return r.Source.Parameter(ctx, in, ref.Name, ref.Version)
	})
	whole.Secure = whole.Secure || ref.Service == "ssm-secure"
	if err != nil || ref.JSONKey == "" {
		return whole, err
	}
	whole.Value, err = member(whole.Value, ref.JSONKey)
	return whole, err
}

// once keeps what was found. A failure that may pass is not kept.
func (r *Resolver) once(key string, read func() (Parameter, error)) (Parameter, error) {
	r.mu.Lock()
	if r.cache == nil {
		r.cache = map[string]*cached{}
	}
	c := r.cache[key]
	if c == nil {
		c = &cached{}
		r.cache[key] = c
	}
	r.mu.Unlock()
	c.once.Do(func() { c.value, c.err = read() })
	if c.err != nil && !errors.Is(c.err, ErrNotFound) && !errors.Is(c.err, ErrDenied) {
		r.mu.Lock()
		if r.cache[key] == c {
			delete(r.cache, key)
		}
		r.mu.Unlock()
	}
	return c.value, c.err
}

// member reads a key of a secret that is a JSON object. Values that are no text are given as JSON.
func member(secret, key string) (string, error) {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(secret), &object) != nil {
		return "", fmt.Errorf("the secret is no JSON object: %w", ErrUnsuitable)
	}
	raw, ok := object[key]
	if !ok {
		return "", fmt.Errorf("the secret has no key %s: %w", key, ErrUnsuitable)
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	return string(raw), nil
}
