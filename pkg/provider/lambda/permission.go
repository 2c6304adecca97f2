package lambda

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

var permissionProperties = []string{
	"Action", "EventSourceToken", "FunctionName", "FunctionUrlAuthType", "InvokedViaFunctionUrl", "Principal", "PrincipalOrgID", "SourceAccount", "SourceArn",
}

// permission is a statement in a function's policy. Its id, which is the physical id, is that of the operation that
// adds it, so that the statement itself tells who has made it.
func permission() direct.Kind[*client] {
	return direct.Kind[*client]{
		Type: "AWS::Lambda::Permission", Identity: direct.ByName, CreateOnly: permissionProperties,
		Create: func(ctx context.Context, c *call) (string, error) {
			id := statementID(c)
			in := lambda.AddPermissionInput{StatementId: &id}
			if err := direct.Into(c.Properties, &in, nil, permissionProperties...); err != nil {
				return "", err
			}
			if _, err := c.Client.AddPermission(ctx, &in); err != nil {
				return "", taken(ctx, c, err, findPermission)
			}
			return id, nil
		},
		Find: findPermission, Read: readPermission,
		Delete: func(ctx context.Context, c *call) error {
			_, err := c.Client.RemovePermission(ctx, &lambda.RemovePermissionInput{
				FunctionName: aws.String(direct.Text(c.Known("FunctionName"))), StatementId: &c.PhysicalID,
			})
			return err
		},
	}
}

// maxStatementID is how long the id of a statement may be.
// https://docs.aws.amazon.com/lambda/latest/api/API_AddPermission.html
const maxStatementID = 100

func statementID(c *call) string {
	name := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, c.Stack+"-"+c.LogicalID)
	mark := c.Mark()
	return name[:min(len(name), maxStatementID-len(mark)-1)] + "-" + mark
}

func findPermission(ctx context.Context, c *call) (direct.Found, error) {
	id := statementID(c)
	if _, err := getStatement(ctx, c, id); err != nil {
		return direct.Found{}, err
	}
	return direct.Found{ID: id, Tags: map[string]string{direct.MarkKey: c.Mark()}}, nil
}

// statement is one of a function's policy.
type statement struct {
	Sid       string
	Action    any
	Principal any
	Condition map[string]map[string]any
}

func getStatement(ctx context.Context, c *call, id string) (*statement, error) {
	out, err := c.Client.GetPolicy(ctx, &lambda.GetPolicyInput{FunctionName: aws.String(direct.Text(c.Known("FunctionName")))})
	if err != nil {
		return nil, err
	}
	var policy struct{ Statement []statement }
	if err := json.Unmarshal([]byte(aws.ToString(out.Policy)), &policy); err != nil {
		return nil, direct.Invalid("the function's policy can't be read")
	}
	for i := range policy.Statement {
		if policy.Statement[i].Sid == id {
			return &policy.Statement[i], nil
		}
	}
	return nil, direct.NotFound("permission", id)
}

// conditions are the properties that a statement has as conditions.
// https://docs.aws.amazon.com/lambda/latest/dg/access-control-resource-based.html
var conditions = map[string]string{
	"aws:sourcearn": "SourceArn", "aws:sourceaccount": "SourceAccount", "aws:principalorgid": "PrincipalOrgID",
	"lambda:eventsourcetoken": "EventSourceToken", "lambda:functionurlauthtype": "FunctionUrlAuthType", "lambda:invokedviafunctionurl": "InvokedViaFunctionUrl",
}

func readPermission(ctx context.Context, c *call) (direct.Live, error) {
	s, err := getStatement(ctx, c, c.PhysicalID)
	if err != nil {
		return direct.Live{}, err
	}
	model := map[string]any{"Action": s.Action, "FunctionName": c.Known("FunctionName"), "Principal": principal(s.Principal, direct.Text(c.Known("Principal")))}
	for _, keys := range s.Condition {
		for key, value := range keys {
			if property := conditions[strings.ToLower(key)]; property != "" {
				model[property] = value
			}
		}
	}
	return direct.Live{Properties: direct.From(c.Type, model, nil), Attributes: map[string]any{"Id": c.PhysicalID}}, nil
}

// principal is whom a statement is about, as the template writes it when that means the same: an account is stored
// as its root user.
func principal(live any, known string) any {
	of, ok := live.(map[string]any)
	if !ok {
		return live
	}
	for _, kind := range []string{"Service", "AWS", "Federated"} {
		text := direct.Text(of[kind])
		switch {
		case text == "":
		case known != "" && strings.HasSuffix(text, "::"+known+":root"):
			return known
		default:
			return text
		}
	}
	return nil
}
