package doctor

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/slipway-cdk/slipway/pkg/controlplane"
	"github.com/slipway-cdk/slipway/pkg/iampolicy"
	"github.com/slipway-cdk/slipway/pkg/statebucket"
)

// simulator answers SimulatePrincipalPolicy as IAM does, in its wire format
// (https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulatePrincipalPolicy.html), one result a page.
type simulator struct {
	*testing.T
	policies map[string][]iampolicy.Document // by the principal's ARN
	missing  []string                        // condition keys that a policy asks for and the request does not have
	pages    int
}

// list reads the members of a list in a form.
func list(form url.Values, name string) (out []string) {
	for i := 1; form.Has(name + ".member." + strconv.Itoa(i)); i++ {
		out = append(out, form.Get(name+".member."+strconv.Itoa(i)))
	}
	return out
}

type evaluation struct {
	XMLName  xml.Name `xml:"member"`
	Action   string   `xml:"EvalActionName"`
	Resource string   `xml:"EvalResourceName"`
	Decision string   `xml:"EvalDecision"`
	Missing  []string `xml:"MissingContextValues>member"`
}

func (s *simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil || r.Form.Get("Action") != "SimulatePrincipalPolicy" {
		s.Errorf("the request is %v, %v", r.Form, err)
	}
	documents, ok := s.policies[r.Form.Get("PolicySourceArn")]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `<ErrorResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><Error><Type>Sender</Type><Code>NoSuchEntity</Code><Message>there is none</Message></Error></ErrorResponse>`)
		return
	}
	known := map[string][]string{}
	for i := 1; r.Form.Has("ContextEntries.member." + strconv.Itoa(i) + ".ContextKeyName"); i++ {
		at := "ContextEntries.member." + strconv.Itoa(i) + "."
		key, values := r.Form.Get(at+"ContextKeyName"), list(r.Form, at+"ContextKeyValues")
		if kind := r.Form.Get(at + "ContextKeyType"); (kind == "stringList") != (key == "dynamodb:LeadingKeys") {
			s.Errorf("%s has the type %s", key, kind)
		}
		known[key] = values
	}
	var results []evaluation
	for _, action := range list(r.Form, "ActionNames") {
		for _, resource := range list(r.Form, "ResourceArns") {
			if strings.ContainsAny(resource, "*$") {
				s.Errorf("%s is no resource", resource)
			}
			e := evaluation{Action: action, Resource: resource, Decision: "implicitDeny"}
			d, err := iampolicy.Evaluate(iampolicy.Call{Action: action, Resource: resource, Context: known}, documents...)
			switch {
			case err != nil:
				s.Error(err)
			case d.Allowed:
				e.Decision = "allowed"
			default:
				e.Missing = s.missing
			}
			results = append(results, e)
		}
	}
	n, _ := strconv.Atoi(r.Form.Get("Marker"))
	body, err := xml.Marshal(results[n])
	if err != nil {
		s.Error(err)
	}
	s.pages++
	more := `<IsTruncated>false</IsTruncated>`
	if n+1 < len(results) {
		more = `<IsTruncated>true</IsTruncated><Marker>` + strconv.Itoa(n+1) + `</Marker>`
	}
	fmt.Fprintf(w, `<SimulatePrincipalPolicyResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><SimulatePrincipalPolicyResult>
		%s<EvaluationResults>%s</EvaluationResults></SimulatePrincipalPolicyResult>
		<ResponseMetadata><RequestId>1cdb5b0a-4c15-11e5-b121-bd8c7EXAMPLE</RequestId></ResponseMetadata></SimulatePrincipalPolicyResponse>`, more, body)
}

func TestIAMIsAskedWhetherTheCallerMayDoWhatADeployNeeds(t *testing.T) {
	plane := controlplane.Descriptor{
		Region: "eu-west-1", Account: "111122223333", StateMachine: "arn:aws:states:eu-west-1:111122223333:stateMachine:slipway-run", Table: "runs",
		UploadsBucket: "uploads", VaultKey: "arn:aws:kms:eu-west-1:111122223333:key/k",
	}
	const user, id = "arn:aws:iam::111122223333:user/me", "AIDACKCEVSQ6C2EXAMPLE"
	whole := controlplane.CallerPolicy(plane.Scope("slipway"))
	without := func(sid string) []iampolicy.Document {
		return []iampolicy.Document{iampolicy.New(slices.DeleteFunc(slices.Clone(whole.Statement), func(s iampolicy.Statement) bool { return s.Sid == sid })...)}
	}
	named := iampolicy.New(slices.Clone(whole.Statement)...)
	for i, s := range named.Statement {
		if s.Sid == "Upload" {
			named.Statement[i].Resource = []string{"arn:aws:s3:::uploads/uploads/" + id + "/*"}
		}
	}
	for _, c := range []struct {
		what     string
		policies []iampolicy.Document
		missing  []string
		verdict  Verdict
		says     []string
		not      []string
	}{
		{"with the callers' policy", []iampolicy.Document{whole}, nil, OK, []string{user + " may do"}, nil},
		{"with a policy that names the caller", []iampolicy.Document{named}, nil, OK, nil, nil},
		{"with none", []iampolicy.Document{}, nil, Failed, []string{"ssm:GetParameter", "s3:PutObject", "states:StartExecution", "dynamodb:Query", "kms:GenerateDataKey"}, nil},
		{"when it may not upload", without("Upload"), nil, Failed, []string{"s3:PutObject", "s3:AbortMultipartUpload"}, []string{"ssm:GetParameter", "states:StartExecution", "dynamodb:"}},
		{"when it may not list runs", without("ListRuns"), nil, Failed, []string{"dynamodb:Query"}, []string{"dynamodb:GetItem", "s3:"}},
		{"when it may not seal", without("SealParameters"), nil, Failed, []string{"kms:GenerateDataKey"}, []string{"s3:"}},
		{"when it depends on where the call comes from", without("StartRuns"), []string{"aws:SourceIp"}, Unknown, []string{"aws:SourceIp"}, []string{"states:StartExecution"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			iam := &simulator{T: t, policies: map[string][]iampolicy.Document{user: c.policies}, missing: c.missing}
			server := httptest.NewServer(iam)
			defer server.Close()
			x := &examination{
				Patient: Patient{Plane: "slipway", Config: aws.Config{
					Region: "eu-west-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("AKIAEXAMPLE", "secret", ""),
				}},
				account: "111122223333", arn: user, userID: id,
			}
			x.permissions(t.Context(), statebucket.Found{}, false, plane, true)
			if len(x.checks) != 1 || x.checks[0].Verdict != c.verdict {
				t.Fatalf("it says %+v", x.checks)
			}
			for _, part := range c.says {
				if !strings.Contains(x.checks[0].Detail, part) {
					t.Errorf("it says %q, without %s", x.checks[0].Detail, part)
				}
			}
			for _, part := range c.not {
				if strings.Contains(x.checks[0].Detail, part) {
					t.Errorf("it says %q", x.checks[0].Detail)
				}
			}
			if want := 4 + 1 + 1 + 3 + 2 + 1; iam.pages != want {
				t.Errorf("%d results were read, want %d", iam.pages, want)
			}
		})
	}
}

func TestARoleThatIsNotFoundByItsSessionIsTriedOut(t *testing.T) {
	server := httptest.NewServer(&simulator{T: t})
	defer server.Close()
	x := &examination{
		Patient: Patient{Plane: "slipway", Config: aws.Config{
			Region: "eu-west-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("AKIAEXAMPLE", "secret", ""),
		}},
		account: "111122223333", arn: "arn:aws:sts::111122223333:assumed-role/deploy/me", userID: "AROAEXAMPLE:me",
	}
	x.permissions(t.Context(), statebucket.Found{}, false, controlplane.Descriptor{Region: "eu-west-1", Account: "111122223333", Table: "runs", UploadsBucket: "u"}, true)
	if len(x.checks) != 1 || x.checks[0].Verdict != Unknown || !strings.Contains(x.checks[0].Detail, "iam:SimulatePrincipalPolicy") {
		t.Errorf("it says %+v", x.checks)
	}
}
