package ec2

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// gateway answers for one NAT gateway in some state.
type gateway struct{ state string }

func (g gateway) Do(r *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(raw))
	if err != nil {
		return nil, err
	}
	one := "<natGatewayId>nat-1</natGatewayId><state>" + g.state + "</state><failureCode>InsufficientFreeAddressesInSubnet</failureCode><failureMessage>full</failureMessage>"
	body := fmt.Sprintf("<%sResponse><natGatewaySet><item>%s</item></natGatewaySet><natGateway>%s</natGateway></%[1]sResponse>", form.Get("Action"), one, one)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

func TestHowFarANATGatewayIsFollowed(t *testing.T) {
	for _, c := range []struct {
		state string
		wait  provider.WaitMode
		done  bool
		kind  provider.Kind
	}{
		{"pending", provider.WaitNone, true, ""},
		{"pending", provider.WaitDefault, false, ""},
		{"pending", provider.WaitFull, false, ""},
		{"available", provider.WaitDefault, true, ""},
		{"available", provider.WaitFull, true, ""},
		{"failed", provider.WaitDefault, false, provider.KindFailed},
	} {
		p := Service().Providers(direct.Env{Clock: clock.NewFake(time.Unix(0, 0)), Config: func(string, string) aws.Config {
			return aws.Config{Region: "eu-west-1", HTTPClient: gateway{c.state}, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
		}})["AWS::EC2::NatGateway"]
		progress, err := p.Create(t.Context(), provider.Request{
			Type: "AWS::EC2::NatGateway", LogicalID: "Nat", Token: "t", Operation: "o", Wait: c.wait, Properties: map[string]any{"SubnetId": "subnet-1"},
		})
		if progress.Done != c.done || provider.KindOf(err) != c.kind {
			t.Errorf("%s, wait %q: done %t, %v", c.state, c.wait, progress.Done, err)
		}
		if err == nil && !c.done && progress.Handle == nil {
			t.Errorf("%s, wait %q: there is no handle", c.state, c.wait)
		}
	}
}
