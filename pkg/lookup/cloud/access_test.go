package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"

	"github.com/slipway-cdk/slipway/pkg/lookup"
)

const (
	zonesAnswer = `<DescribeAvailabilityZonesResponse><availabilityZoneInfo><item><zoneName>eu-west-1b</zoneName><zoneState>available</zoneState></item>` +
		`<item><zoneName>eu-west-1c</zoneName><zoneState>impaired</zoneState></item><item><zoneName>eu-west-1a</zoneName><zoneState>available</zoneState></item></availabilityZoneInfo></DescribeAvailabilityZonesResponse>`
	roleAnswer = `<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ROLE</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>` +
		`<Expiration>2999-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`
	lookupRole = `"lookupRoleArn": "arn:${AWS::Partition}:iam::` + foreign + `:role/look-${AWS::AccountId}-${AWS::Region}"`
)

func TestNothingIsCalledBeforeTheFirstQuestion(t *testing.T) {
	New(Options{Config: func(context.Context) (aws.Config, error) {
		t.Error("the configuration was read")
		return aws.Config{}, nil
	}})
}

func TestEveryKindIsAnswered(t *testing.T) {
	if got := New(Options{}).Kinds(); !slices.Equal(got, lookup.Kinds()) {
		t.Errorf("answered are %v, asked can be %v", got, lookup.Kinds())
	}
}

func TestTheCallerLooksInItsOwnAccount(t *testing.T) {
	for _, account := range []string{own, "", unknownAccount} {
		w := newWorld(t, map[string]func(call) (string, error){"DescribeAvailabilityZones": says(zonesAnswer)})
		got, err := w.askIn(t, account, "availability-zones", `{}`)
		wants(t, got, err, `["eu-west-1a", "eu-west-1b"]`)
		if c := w.last(t, "DescribeAvailabilityZones"); c.key != "CALLER" || c.region != region {
			t.Errorf("%s looked in %s", c.key, c.region)
		}
	}
}

func TestAnotherAccountNeedsARole(t *testing.T) {
	w := newWorld(t, map[string]func(call) (string, error){})
	got, err := w.askIn(t, foreign, "availability-zones", `{}`)
	refuses(t, got, err, "account "+foreign+" is asked", "are of account "+own)
	if calls := w.actions(); len(calls) != 1 {
		t.Errorf("called were %v", calls)
	}
}

func TestTheLookupRoleLooks(t *testing.T) {
	w := newWorld(t, map[string]func(call) (string, error){"AssumeRole": says(roleAnswer), "DescribeAvailabilityZones": says(zonesAnswer)})
	for range 2 {
		got, err := w.askIn(t, foreign, "availability-zones", `{`+lookupRole+`, "lookupRoleExternalId": "xid",
			"assumeRoleAdditionalOptions": {"Tags": [{"Key": "team", "Value": "web"}], "DurationSeconds": 900, "RoleSessionName": "me"}}`)
		wants(t, got, err, `["eu-west-1a", "eu-west-1b"]`)
	}
	want := []string{"GetCallerIdentity", "AssumeRole", "DescribeAvailabilityZones", "DescribeAvailabilityZones"}
	if calls := w.actions(); !slices.Equal(calls, want) {
		t.Errorf("called were %v: the caller and the role are asked for once", calls)
	}
	c := w.last(t, "AssumeRole")
	for name, want := range map[string]string{
		"RoleArn": "arn:aws-cn:iam::" + foreign + ":role/look-" + foreign + "-" + region, "ExternalId": "xid", "RoleSessionName": "me",
		"DurationSeconds": "900", "Tags.member.1.Key": "team", "Tags.member.1.Value": "web", "TransitiveTagKeys.member.1": "team",
	} {
		if got := c.form.Get(name); got != want {
			t.Errorf("%s of AssumeRole is %q, want %q", name, got, want)
		}
	}
	if c := w.last(t, "DescribeAvailabilityZones"); c.key != "ROLE" || c.region != region {
		t.Errorf("%s looked in %s", c.key, c.region)
	}
	if len(w.told) != 0 {
		t.Errorf("told: %v", w.told)
	}
}

func TestARoleThatIsAskedForOtherwiseIsAnotherSession(t *testing.T) {
	w := newWorld(t, map[string]func(call) (string, error){"AssumeRole": says(roleAnswer), "DescribeAvailabilityZones": says(zonesAnswer)})
	for _, xid := range []string{"a", "b", "a"} {
		if _, err := w.askIn(t, foreign, "availability-zones", `{`+lookupRole+`, "lookupRoleExternalId": "`+xid+`"}`); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for _, a := range w.actions() {
		if a == "AssumeRole" {
			n++
		}
	}
	if n != 2 {
		t.Errorf("AssumeRole was called %d times", n)
	}
	if name := w.last(t, "AssumeRole").form.Get("RoleSessionName"); name != "slipway-lookup" {
		t.Errorf("the session is called %q", name)
	}
}

func TestWithoutTheRoleTheCallerLooksInItsOwnAccountAndSaysSoOnce(t *testing.T) {
	w := newWorld(t, map[string]func(call) (string, error){"AssumeRole": fails("AccessDenied"), "DescribeAvailabilityZones": says(zonesAnswer)})
	for range 2 {
		got, err := w.ask(t, "availability-zones", `{`+lookupRole+`}`)
		wants(t, got, err, `["eu-west-1a", "eu-west-1b"]`)
	}
	if len(w.told) != 1 || !strings.Contains(w.told[0], "role/look-"+own) || !strings.Contains(w.told[0], "denied") {
		t.Errorf("told: %v", w.told)
	}
	if c := w.last(t, "DescribeAvailabilityZones"); c.key != "CALLER" {
		t.Errorf("%s looked", c.key)
	}
}

func TestARoleThatCannotBeAssumedIsNamed(t *testing.T) {
	for name, c := range map[string]struct{ account, code, want string }{
		"in another account":       {foreign, "AccessDenied", "access is denied, or there is no such role"},
		"for another reason":       {foreign, "RegionDisabledException", "RegionDisabledException"},
		"with expired credentials": {own, "ExpiredToken", "have expired"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]func(call) (string, error){"AssumeRole": fails(c.code)})
			got, err := w.askIn(t, c.account, "availability-zones", `{`+lookupRole+`}`)
			refuses(t, got, err, "role/look-"+c.account, "for account "+c.account, "of account "+own, c.want)
			if w.told != nil {
				t.Errorf("told: %v", w.told)
			}
		})
	}
}

func TestOptionsThatAreNotTheRolesAreRefused(t *testing.T) {
	for options, want := range map[string]string{
		`{"ExternalId": "x"}`:           "lookupRoleExternalId",
		`{"Colour": "red"}`:             `unknown field "Colour"`,
		`{"DurationSeconds": "an age"}`: "DurationSeconds",
	} {
		w := newWorld(t, map[string]func(call) (string, error){})
		_, err := w.ask(t, "availability-zones", `{`+lookupRole+`, "assumeRoleAdditionalOptions": `+options+`}`)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "an age") {
			t.Errorf("%s: %v", options, err)
		}
	}
}

func TestWithoutCredentialsTheErrorSaysSo(t *testing.T) {
	broken := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, errors.New("the session of profile dev is over")
	})
	for _, c := range []struct {
		credentials aws.CredentialsProvider
		want        string
	}{
		{nil, "no AWS credentials are configured"},
		{broken, "the session of profile dev is over"},
		{aws.NewCredentialsCache(ec2rolecreds.New(func(o *ec2rolecreds.Options) { o.Client = noInstance{} })), "no instance role"},
	} {
		l := New(Options{Config: func(context.Context) (aws.Config, error) {
			return aws.Config{Region: region, Credentials: c.credentials}, nil
		}})
		_, err := l.Lookup(t.Context(), lookup.Query{Kind: "ssm", Region: region})
		refuses(t, nil, err, c.want)
		if _, _, err := l.Identity(t.Context()); err == nil {
			t.Error("it has an identity")
		}
	}
	w := newWorld(t, map[string]func(call) (string, error){"GetCallerIdentity": fails("InvalidClientTokenId")})
	got, err := w.ask(t, "ssm", `{}`)
	refuses(t, got, err, "InvalidClientTokenId")
}

// noInstance is the metadata of a machine that is none of EC2's.
type noInstance struct{}

func (noInstance) GetMetadata(context.Context, *imds.GetMetadataInput, ...func(*imds.Options)) (*imds.GetMetadataOutput, error) {
	return nil, errors.New("no route to host")
}

func TestTheIdentityIsTheCallers(t *testing.T) {
	w := newWorld(t, map[string]func(call) (string, error){})
	account, where, err := w.Identity(t.Context())
	if account != own || where != "us-west-2" || err != nil {
		t.Errorf("%s, %s, %v", account, where, err)
	}
	// Credentials that know their account need no call.
	l := New(Options{Config: func(context.Context) (aws.Config, error) {
		return aws.Config{Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b", AccountID: foreign}, nil
		})}, nil
	}})
	if account, where, err = l.Identity(t.Context()); account != foreign || where != "" || err != nil {
		t.Errorf("%s, %s, %v", account, where, err)
	}
}

func TestARegionIsNeeded(t *testing.T) {
	l := New(Options{Config: func(context.Context) (aws.Config, error) { return aws.Config{}, nil }})
	for _, r := range []string{"", unknownRegion} {
		if _, err := l.Lookup(t.Context(), lookup.Query{Kind: "ssm", Region: r}); err == nil || !strings.Contains(err.Error(), "--region") {
			t.Errorf("%v", err)
		}
	}
}

func TestAConfigurationThatCannotBeReadIsReadAgain(t *testing.T) {
	n := 0
	l := New(Options{Config: func(context.Context) (aws.Config, error) {
		n++
		return aws.Config{}, errors.New("no such profile")
	}})
	for range 2 {
		if _, err := l.Lookup(t.Context(), lookup.Query{Kind: "ssm"}); err == nil || !strings.Contains(err.Error(), "no such profile") {
			t.Errorf("%v", err)
		}
	}
	if n != 2 {
		t.Errorf("it was read %d times", n)
	}
}

func TestADenialNamesTheActionAndWhoLooked(t *testing.T) {
	w := newWorld(t, map[string]func(call) (string, error){"AssumeRole": says(roleAnswer), "DescribeAvailabilityZones": fails("UnauthorizedOperation")})
	got, err := w.askIn(t, foreign, "availability-zones", `{`+lookupRole+`}`)
	refuses(t, got, err, "account "+foreign+", region "+region+", as arn:aws-cn:iam::"+foreign+":role/look", "ec2:DescribeAvailabilityZones is not allowed (UnauthorizedOperation)")
	var denied *DeniedError
	if !errors.As(err, &denied) || !strings.Contains(denied.Next(), "ec2:DescribeAvailabilityZones") {
		t.Errorf("%v", err)
	}
}

func TestNobodyAsksTwiceAtATime(t *testing.T) {
	w := newWorld(t, map[string]func(call) (string, error){"AssumeRole": says(roleAnswer), "DescribeAvailabilityZones": says(zonesAnswer)})
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			q := lookup.Query{Kind: "availability-zones", Account: foreign, Region: region}
			if err := json.Unmarshal([]byte(`{`+lookupRole+`}`), &q.Props); err != nil {
				t.Error(err)
			}
			if _, err := w.Lookup(t.Context(), q); err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	if calls := w.actions(); len(calls) != 2+8 {
		t.Errorf("called were %v", calls)
	}
}

func TestPluginsAreRefused(t *testing.T) {
	got, err := New(Options{}).Lookup(t.Context(), lookup.Query{Kind: "plugin", Props: map[string]any{"pluginName": "vault"}})
	refuses(t, got, err, "vault", "can't be loaded")
}
