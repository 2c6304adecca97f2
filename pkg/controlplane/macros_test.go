package controlplane

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/macro"
	"github.com/slipway-cdk/slipway/pkg/objectstore/s3"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// formation is CloudFormation beside STS. It has no change set before it was asked for one, unless it denies everything.
type formation struct {
	*tokenService
	denies bool
	// calls are the forms that it was sent, with the host and the caller's access key among their values.
	calls []url.Values
}

func (f *formation) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(r.URL.Host, "cloudformation.") {
		return f.tokenService.RoundTrip(r)
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(b))
	if err != nil {
		return nil, err
	}
	_, signer, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	signer, _, _ = strings.Cut(signer, "/")
	form.Set("signer", signer)
	form.Set("host", r.URL.Host)
	f.calls = append(f.calls, form)
	status, body := http.StatusOK, "<R></R>"
	switch {
	case f.denies:
		status, body = http.StatusForbidden, `<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>not authorized</Message></Error></ErrorResponse>`
	case form.Get("Action") == "DescribeChangeSet":
		status, body = http.StatusNotFound, `<ErrorResponse><Error><Type>Sender</Type><Code>ChangeSetNotFound</Code><Message>ChangeSet [expand] does not exist</Message></Error></ErrorResponse>`
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r, ProtoMajor: 1, ProtoMinor: 1}, nil
}

func macrosWorld() (run.Macros, *formation) {
	a, s := rolesWorld(0)
	f := &formation{tokenService: s}
	a.Base.HTTPClient = &http.Client{Transport: f}
	bucket := macro.Bucket{Client: s3.NewClient(a.Base, "us-west-2"), Name: "state-bucket"}
	return a.Macros(bucket, s.clock, ownRoleMacros), f
}

func TestMacrosRunUnderTheStacksRoleAndTheTemplateIsReadUnderNone(t *testing.T) {
	m, f := macrosWorld()
	ctx := run.WithActing(t.Context(), run.Acting{
		RunID: "run-1", Stack: runlog.StackRef{Account: theirs, Region: "eu-central-1", Name: "Web"}, Role: run.ActingOf(acting(t.Context(), "run-1", "Web")).Role,
	})
	h := macro.NewHandle("id", 1, time.Unix(1e9, 0))
	req := macro.Request{Stack: "Web", Key: "slipway/templates/x.json", Body: []byte(`{"Transform": "M", "Description": "` + strings.Repeat("x", macro.MaxInline) + `"}`)}
	if p, err := m.Poll(ctx, req, h); err != nil || p.Status != macro.Absent {
		t.Fatalf("got %+v, %v", p, err)
	}
	if p, err := m.Start(ctx, req, h); err != nil || p.Status != macro.Running {
		t.Fatalf("got %+v, %v", p, err)
	}
	if err := m.Discard(ctx, h); err != nil {
		t.Fatal(err)
	}
	for i, action := range []string{"DescribeChangeSet", "CreateChangeSet", "DeleteStack"} {
		c := f.calls[i]
		if c.Get("Action") != action || c.Get("signer") != "ASIA1" || c.Get("host") != "cloudformation.eu-central-1.amazonaws.com" || c.Get("StackName") != h.StackName {
			t.Errorf("%s was sent as %v", action, c)
		}
	}
	// The address is of the bucket's region, and signed by the control plane, which has the bucket.
	u, err := url.Parse(f.calls[1].Get("TemplateURL"))
	if err != nil {
		t.Fatal(err)
	}
	if u.Host != "state-bucket.s3.us-west-2.amazonaws.com" || u.Path != "/slipway/templates/x.json" || !strings.HasPrefix(u.Query().Get("X-Amz-Credential"), "AKID/") {
		t.Errorf("the template is read from %s", u.Redacted())
	}
}

func TestAStackWithoutARoleIsToldThatMacrosNeedOne(t *testing.T) {
	m, f := macrosWorld()
	f.denies = true
	req := macro.Request{Stack: "Web", Body: []byte(`{"Transform": "M"}`)}
	h := macro.NewHandle("id", 1, time.Unix(1e9, 0))
	own := run.WithActing(t.Context(), run.Acting{RunID: "run-1", Stack: runlog.StackRef{Account: "111111111111", Region: "eu-west-1", Name: "Web"}})
	_, err := m.Poll(own, req, h)
	if ds := diag.From(err); len(ds) != 1 || ds[0].Next != ownRoleMacros || f.calls[0].Get("signer") != "AKID" {
		t.Errorf("got %v", err)
	}
	_, err = m.Start(acting(t.Context(), "run-1", "Web"), req, h)
	if ds := diag.From(err); len(ds) != 1 || ds[0].Next == ownRoleMacros || !strings.Contains(ds[0].Next, "cloudformation:CreateChangeSet") {
		t.Errorf("got %v", err)
	}
}
