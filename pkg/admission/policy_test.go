package admission

import (
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

const own = "111122223333"

func policy(t *testing.T, text string) Policy {
	t.Helper()
	p, err := ParsePolicy([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const twoTeams = `{"version": 1, "rules": [
	{"name": "web", "principals": ["AROAWEB:*"], "inboxes": ["web"], "stacks": ["web-*"], "regions": ["eu-*"], "commands": ["deploy", "destroy"]},
	{"name": "web in production", "principals": ["AROAWEB:lead"], "stacks": ["web-prod"], "accounts": ["444455556666"], "commands": ["deploy"],
		"roles": ["arn:aws:iam::444455556666:role/slipway-web", {"arn": "arn:aws:iam::444455556666:role/slipway-admin", "externalId": "x"}], "options": ["replace"]},
	{"name": "secret team", "principals": ["AROAHUSH:*"], "stacks": ["hush-*"]}]}`

func TestDecide(t *testing.T) {
	web := func(change func(*Ask)) Ask {
		a := Ask{Who: Who{Principal: "AROAWEB:ann"}, Command: runlog.CommandDeploy, Own: own, Stack: runlog.StackRef{Account: own, Region: "eu-west-1", Name: "web-app"}}
		if change != nil {
			change(&a)
		}
		return a
	}
	production := func(a *Ask) {
		a.Who.Principal, a.Stack.Account, a.Stack.Name = "AROAWEB:lead", "444455556666", "web-prod"
	}
	for _, tt := range []struct {
		name string
		ask  Ask
		role string
		want string // what the refusal says, "" for a grant
	}{
		{"what a rule allows", web(nil), "", ""},
		{"by the inbox", web(func(a *Ask) { a.Who = Who{Inbox: "web"} }), "", ""},
		{"by another inbox", web(func(a *Ask) { a.Who = Who{Inbox: "api"} }), "", "no rule of this control plane's policy is for inbox/api"},
		{"a principal that is called like an inbox", web(func(a *Ask) { a.Who = Who{Principal: "web"} }), "", "no rule"},
		{"by nobody", web(func(a *Ask) { a.Who = Who{} }), "", "no rule"},
		{"by somebody else", web(func(a *Ask) { a.Who.Principal = "AROAOTHER:ann" }), "", "no rule of this control plane's policy is for AROAOTHER:ann"},
		{"another team's stack", web(func(a *Ask) { a.Stack.Name = "hush-db" }), "", "none of your rules is for stack hush-db"},
		{"another region", web(func(a *Ask) { a.Stack.Region = "us-east-1" }), "", "region us-east-1"},
		{"another account", web(func(a *Ask) { a.Stack.Account = "999999999999" }), "", "account 999999999999"},
		{"a command that is not listed", web(func(a *Ask) { a.Command = runlog.CommandRollback }), "", "allows rollback"},
		{"the plan of what is listed", web(func(a *Ask) { a.Command, a.Of = runlog.CommandPlan, runlog.CommandDestroy }), "", ""},
		{"the plan of what is not", web(func(a *Ask) { a.Command, a.Of = runlog.CommandPlan, runlog.CommandRollback }), "", "plan (of rollback)"},
		{"cancelling what is listed", web(func(a *Ask) { a.Command, a.Of = runlog.CommandCancel, runlog.CommandDeploy }), "", ""},
		{"a role that nobody has listed", web(func(a *Ask) { a.Role = "arn:aws:iam::111122223333:role/admin" }), "", "allows role arn:aws:iam::111122223333:role/admin"},
		{"an option that is not listed", web(func(a *Ask) { a.Options.ForceStatefulRecreation = true }), "", "option forceStatefulRecreation"},
		{"an option that destroys nothing", web(func(a *Ask) { a.Options.Concurrency = 3 }), "", ""},
		{"the first role of the account", web(production), "arn:aws:iam::444455556666:role/slipway-web", ""},
		{"another role of the rule", web(func(a *Ask) {
			production(a)
			a.Role = "arn:aws:iam::444455556666:role/slipway-admin"
		}), "arn:aws:iam::444455556666:role/slipway-admin", ""},
		{"production by somebody of the team", web(func(a *Ask) {
			production(a)
			a.Who.Principal = "AROAWEB:ann"
		}), "", "account 444455556666"},
		{"an option of the rule", web(func(a *Ask) {
			production(a)
			a.Options.Replace = true
		}), "arn:aws:iam::444455556666:role/slipway-web", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			role, no := policy(t, twoTeams).Decide(tt.ask)
			if tt.want == "" {
				if no != nil {
					t.Fatalf("refused: %v", no)
				}
				if got := arnOf(role); got != tt.role {
					t.Errorf("the role is %q, want %q", got, tt.role)
				}
				return
			}
			if no == nil || !strings.Contains(no.Detail, tt.want) {
				t.Fatalf("%v, want %q", no, tt.want)
			}
			for _, hidden := range []string{"secret team", "AROAHUSH", "slipway-web", "web in production"} {
				if strings.Contains(no.Error()+no.Next, hidden) {
					t.Errorf("the refusal tells of %q: %v", hidden, no)
				}
			}
		})
	}
}

func arnOf(r *run.Role) string {
	if r == nil {
		return ""
	}
	return r.ARN
}

func TestWithoutAPolicyTheOwnAccountIsOpenToCallersAndNoInboxIs(t *testing.T) {
	ask := Ask{Who: Who{Principal: "AIDAX"}, Command: runlog.CommandDestroy, Own: own, Stack: runlog.StackRef{Account: own, Region: "eu-west-1", Name: "any"}, Options: run.Options{Force: true}}
	if _, no := Open().Decide(ask); no != nil {
		t.Errorf("%v", no)
	}
	ask.Stack.Account = "999999999999"
	if _, no := Open().Decide(ask); no == nil || !strings.Contains(no.Detail, "account 999999999999") {
		t.Errorf("%v", no)
	}
	ask.Stack.Account, ask.Who = own, Who{Inbox: "ci"}
	if _, no := Open().Decide(ask); no == nil {
		t.Error("an inbox is open")
	}
}

func TestParsePolicyRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{"version": 2}`: "version is 2",
		`{"version": 1, "rules": [{"principal": ["x"]}]}`:                          "unknown field",
		`{"version": 1, "rules": []} {}`:                                           "something follows",
		`{"version": 1, "rules": [{"stacks": ["a["]}]}`:                            "not a pattern",
		`{"version": 1, "rules": [{"stacks": [""]}]}`:                              "not a pattern",
		`{"version": 1, "rules": [{"commands": ["deploi"]}]}`:                      `no command "deploi"`,
		`{"version": 1, "rules": [{"options": ["forc"]}]}`:                         `no option "forc"`,
		`{"version": 1, "rules": [{"roles": ["admin"]}]}`:                          "not the ARN of a role",
		`{"version": 1, "rules": [{"roles": [{"arn": "x", "externalID2": "y"}]}]}`: "unknown field",
		`[]`: "not a policy",
	} {
		if _, err := ParsePolicy([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestPlaceOf(t *testing.T) {
	for key, want := range map[string]string{
		"uploads/AROAX:me/submissions/x.json": "AROAX:me", "inbox/web/app.zip": "inbox/web", "inbox/web/a/b.zip": "inbox/web",
		"uploads/x": "", "uploads//x": "", "inbox/app.zip": "", "inbox//app.zip": "", "other/x/y": "", "": "", "uploads/me/": "",
	} {
		p, ok := placeOf(key)
		if ok != (want != "") || ok && p.who.String() != want {
			t.Errorf("%q is the place of %q, %v", key, p.who, ok)
		}
	}
}
