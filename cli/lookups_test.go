package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/lookup"
	"github.com/slipway-cdk/slipway/pkg/synth"
)

// awsHere sets what the AWS configuration of this process is: nothing, but for the given variables.
func awsHere(t *testing.T, variables map[string]string) {
	t.Helper()
	none := filepath.Join(t.TempDir(), "none")
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none, "AWS_PROFILE": "", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SESSION_TOKEN": "", "AWS_REGION": "eu-west-1", "AWS_ENDPOINT_URL": "",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "", "AWS_CONTAINER_CREDENTIALS_FULL_URI": "", "AWS_WEB_IDENTITY_TOKEN_FILE": "",
	} {
		t.Setenv(name, value)
	}
	for name, value := range variables {
		t.Setenv(name, value)
	}
}

func TestWhoLooksUp(t *testing.T) {
	env := &environment{streams: &views.Streams{}}
	for name, c := range map[string]struct {
		plane      Plane
		global     globalFlags
		local      bool
		identifies bool
	}{
		"the simulated AWS":              {&fakePlane{}, globalFlags{Local: true}, true, false},
		"the caller, for its own stacks": {&fakePlane{}, globalFlags{Direct: true}, false, false},
		"the caller, for a plane":        {&fakePlane{}, globalFlags{}, false, false},
		"the caller, without a plane":    {nil, globalFlags{}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			var opts synth.Options
			env.lookups(&opts, c.plane, c.global)
			if _, local := opts.Lookup.(*lookup.Registry); local != c.local || opts.Lookup == nil {
				t.Errorf("%T looks up", opts.Lookup)
			}
			if (opts.Identify != nil) != c.identifies {
				t.Errorf("the identity is asked for: %t", opts.Identify != nil)
			}
		})
	}
}

func TestWithoutAPlaneTheAccountIsThatOfTheCredentials(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `<GetCallerIdentityResponse><GetCallerIdentityResult><Account>111122223333</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`)
	}))
	defer server.Close()
	env := &environment{streams: &views.Streams{}}
	for name, c := range map[string]struct {
		variables map[string]string
		account   string
	}{
		"with credentials":    {map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_ENDPOINT_URL": server.URL}, "111122223333"},
		"without credentials": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			awsHere(t, c.variables)
			var opts synth.Options
			env.lookups(&opts, nil, globalFlags{})
			account, region := opts.Identify(t.Context())
			if account != c.account || region != "eu-west-1" {
				t.Errorf("account %q, region %q", account, region)
			}
		})
	}
}
