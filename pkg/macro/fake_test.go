package macro_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/smithy-go"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/macro"
	"github.com/slipway-cdk/slipway/pkg/macro/macrotest"
)

// addresses gives templates theirs.
type addresses struct{ err error }

func (a *addresses) URL(_ context.Context, key string) (string, error) {
	return "https://bucket.example/" + key + "?signature", a.err
}

type bench struct {
	service   *macrotest.Service
	templates *addresses
	clock     *clock.Fake
	expander  *macro.Expander
	// reasons are why the change sets fail, one per attempt; "" is success.
	reasons []string
	// fail gives the error of a call, by its name and how often it was called before.
	fail  func(call string, n int) error
	calls map[string]int
}

func newBench(processed string) *bench {
	b := &bench{calls: map[string]int{}, templates: &addresses{}, clock: clock.NewFake(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	b.clock.AutoAdvance = true
	b.service = &macrotest.Service{Polls: 2, Around: b.around, Macro: func(_ *cloudformation.CreateChangeSetInput, n int) (string, string) {
		if n <= len(b.reasons) && b.reasons[n-1] != "" {
			return "", b.reasons[n-1]
		}
		return processed, ""
	}}
	b.expander = &macro.Expander{CloudFormation: b.service, Templates: b.templates, Clock: b.clock}
	return b
}

func (b *bench) around(_ context.Context, call string, do func() error) error {
	n := b.calls[call]
	b.calls[call]++
	if b.fail != nil {
		if err := b.fail(call, n); err != nil {
			return err
		}
	}
	return do()
}

// expand carries an expansion to its end, as who stores its handle would.
func (b *bench) expand(ctx context.Context, req macro.Request) ([]byte, error) {
	h := macro.NewHandle("id", 1, b.clock.Now())
	p := macro.Progress{Status: macro.Absent}
	for range 1000 {
		var err error
		switch p.Status {
		case macro.Done:
			return p.Body, b.expander.Discard(ctx, h)
		case macro.Absent:
			p, err = b.expander.Start(ctx, req, h)
		case macro.Refused:
			if err := b.expander.Discard(ctx, h); err != nil {
				return nil, err
			}
			h, p = macro.NewHandle("id", h.Attempt+1, h.Started), macro.Progress{Status: macro.Absent}
		default:
			if p.Wait <= 0 {
				return nil, errors.New("it does not say how long to wait")
			}
			if err := b.clock.Sleep(ctx, p.Wait); err != nil {
				return nil, err
			}
			p, err = b.expander.Poll(ctx, req, h)
		}
		if err != nil {
			return nil, errors.Join(err, b.expander.Discard(ctx, h))
		}
	}
	return nil, errors.New("it never ends")
}

// clean checks that nothing is left in the account.
func (b *bench) clean(t *testing.T) {
	t.Helper()
	if left := b.service.Standing(); len(left) != 0 {
		t.Errorf("%v are left", left)
	}
}

func apiError(code string) error {
	return fmt.Errorf("operation error CloudFormation: %w", &smithy.GenericAPIError{Code: code, Message: "as told"})
}
