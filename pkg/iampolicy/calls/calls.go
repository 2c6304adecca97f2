// Package calls tells which IAM actions on which resources a request to AWS is, by the request alone, so that it works
// for the SDK in this process (Recorder) as well as for whatever stands between a program and an emulator. It knows the
// requests that Slipway's own parts make; one that it does not know is an error, and never taken for harmless.
//
// Actions and resources are those of the service authorization reference
// (https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html).
package calls

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/iampolicy"
)

// Place is where requests go to, for the ARNs that they do not name in full.
type Place struct {
	Partition string // "aws" when empty
	Account   string
}

// Signed is what the signature of a request tells.
type Signed struct {
	// AccessKey is the id of the caller's key.
	AccessKey string
	// Region and Service are the signature's scope.
	Region, Service string
}

// SignatureOf reads the signature of a request; ok is false for an unsigned one.
func SignatureOf(r *http.Request) (s Signed, ok bool) {
	credential := r.URL.Query().Get("X-Amz-Credential")
	if _, rest, signed := strings.Cut(r.Header.Get("Authorization"), "Credential="); signed {
		credential, _, _ = strings.Cut(rest, ",")
	}
	// key/date/region/service/aws4_request
	parts := strings.Split(credential, "/")
	if len(parts) != 5 {
		return Signed{}, false
	}
	return Signed{AccessKey: parts[0], Region: parts[2], Service: parts[3]}, true
}

// Of returns the calls that a request is, often one. body is its body.
func Of(r *http.Request, body []byte, in Place) ([]iampolicy.Call, error) {
	s, ok := SignatureOf(r)
	if !ok {
		return nil, fmt.Errorf("%s %s is not signed", r.Method, r.URL.Path)
	}
	if in.Partition == "" {
		in.Partition = "aws"
	}
	q := request{Request: r, body: body, place: in, region: s.Region}
	switch s.Service {
	case "s3":
		return q.s3()
	case "lambda":
		return q.lambda()
	case "sts", "ec2", "cloudformation":
		return q.form(s.Service)
	}
	return q.target()
}

// request is a request that is being read.
type request struct {
	*http.Request
	body   []byte
	place  Place
	region string
}

// arn is the ARN of a resource of this account and region.
func (q request) arn(service, resource string) string {
	return "arn:" + q.place.Partition + ":" + service + ":" + q.region + ":" + q.place.Account + ":" + resource
}

func call(action, resource string) []iampolicy.Call {
	return []iampolicy.Call{{Action: action, Resource: resource}}
}

// target reads the requests of the services that name their operation in a header.
func (q request) target() ([]iampolicy.Call, error) {
	target := q.Header.Get("X-Amz-Target")
	service, operation, _ := strings.Cut(target, ".")
	var in map[string]any
	decoder := json.NewDecoder(bytes.NewReader(q.body))
	decoder.UseNumber()
	if err := decoder.Decode(&in); err != nil {
		return nil, fmt.Errorf("reading the body of %s: %w", target, err)
	}
	text := func(name string) string { v, _ := in[name].(string); return v }
	named := func(service, kind, name string) string {
		if strings.HasPrefix(name, "arn:") {
			return name
		}
		return q.arn(service, kind+name)
	}
	switch service {
	case "DynamoDB_20120810":
		return q.dynamo(operation, in)
	case "TrentService":
		c := call("kms:"+operation, named("kms", "key/", text("KeyId")))
		if context, ok := in["EncryptionContext"].(map[string]any); ok {
			c[0].Context = map[string][]string{}
			for k, v := range context {
				c[0].Context["kms:EncryptionContext:"+k] = []string{fmt.Sprint(v)}
			}
		}
		return c, nil
	case "AWSStepFunctions":
		switch operation {
		case "StartExecution":
			return call("states:StartExecution", text("stateMachineArn")), nil
		case "DescribeExecution", "StopExecution", "GetExecutionHistory":
			return call("states:"+operation, text("executionArn")), nil
		}
	case "AmazonSSM":
		if name := text("Name"); operation == "GetParameter" {
			if strings.HasPrefix(name, "/aws/service/") {
				// AWS's own parameters are of no account.
				return call("ssm:GetParameter", "arn:"+q.place.Partition+":ssm:"+q.region+"::parameter"+name), nil
			}
			return call("ssm:GetParameter", named("ssm", "parameter/", strings.TrimPrefix(name, "/"))), nil
		}
	case "secretsmanager":
		if operation == "GetSecretValue" {
			return call("secretsmanager:GetSecretValue", named("secretsmanager", "secret:", text("SecretId"))), nil
		}
	case "CloudApiService":
		// None of its actions is on a resource.
		return call("cloudformation:"+operation, "*"), nil
	}
	return nil, fmt.Errorf("the request %s is not known", target)
}

// form reads the requests of the services that name their operation in a form.
func (q request) form(service string) ([]iampolicy.Call, error) {
	form, err := url.ParseQuery(string(q.body))
	if err != nil {
		return nil, fmt.Errorf("reading the form of a request to %s: %w", service, err)
	}
	switch action := form.Get("Action"); service + ":" + action {
	case "sts:GetCallerIdentity":
		return nil, nil // nobody needs a permission for it, and no policy can deny it
	case "sts:AssumeRole":
		c := call("sts:AssumeRole", form.Get("RoleArn"))
		if form.Has("Tags.member.1.Key") {
			c = append(c, iampolicy.Call{Action: "sts:TagSession", Resource: form.Get("RoleArn")})
		}
		return c, nil
	case "cloudformation:CreateChangeSet", "cloudformation:DescribeChangeSet", "cloudformation:GetTemplate", "cloudformation:DeleteStack":
		// The resource is the stack, whose id is not known before. CreateChangeSet is allowed on the template's macros
		// besides, which the request does not name.
		return call(service+":"+action, q.arn(service, "stack/"+form.Get("StackName")+"/*")), nil
	case "ec2:DescribeAvailabilityZones":
		return call("ec2:DescribeAvailabilityZones", "*"), nil
	default:
		return nil, fmt.Errorf("the request %s to %s is not known", action, service)
	}
}

// lambda reads an invocation.
func (q request) lambda() ([]iampolicy.Call, error) {
	rest, ok := strings.CutPrefix(q.URL.Path, "/2015-03-31/functions/")
	name, ok2 := strings.CutSuffix(rest, "/invocations")
	if !ok || !ok2 || q.Method != http.MethodPost {
		return nil, fmt.Errorf("the request %s %s to lambda is not known", q.Method, q.URL.Path)
	}
	if !strings.HasPrefix(name, "arn:") {
		name = q.arn("lambda", "function:"+name)
	}
	return call("lambda:InvokeFunction", name), nil
}
