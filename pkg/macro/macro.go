// Package macro has CloudFormation run the macros of a template: a change set of a transient stack is made, its
// processed template is read, and the stack is deleted; nothing is ever executed (reference §8.11). Where there is no
// AWS endpoint, Refuse says what to do instead. AWS::LanguageExtensions is no macro here: intrinsic.Expand evaluates
// it.
//
// An expansion takes many short steps, so that no process has to live as long as the macros do. Every step can be
// repeated, by any process: the transient stack's name follows from a Handle, which the caller stores before the first
// call. The caller also decides when nobody needs the stack any more.
package macro

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// CloudFormation is what is called of the service, under the role that the stack is deployed with. The client of
// aws-sdk-go-v2 is one; it retries throttled calls by itself.
type CloudFormation interface {
	CreateChangeSet(context.Context, *cloudformation.CreateChangeSetInput, ...func(*cloudformation.Options)) (*cloudformation.CreateChangeSetOutput, error)
	DescribeChangeSet(context.Context, *cloudformation.DescribeChangeSetInput, ...func(*cloudformation.Options)) (*cloudformation.DescribeChangeSetOutput, error)
	GetTemplate(context.Context, *cloudformation.GetTemplateInput, ...func(*cloudformation.Options)) (*cloudformation.GetTemplateOutput, error)
	DeleteStack(context.Context, *cloudformation.DeleteStackInput, ...func(*cloudformation.Options)) (*cloudformation.DeleteStackOutput, error)
}

var _ CloudFormation = (*cloudformation.Client)(nil)

// Templates tells where CloudFormation can read a template that is too large for the call itself.
type Templates interface {
	// URL returns an address under which whoever has it can read the object for some minutes.
	URL(ctx context.Context, key string) (string, error)
}

// Refuse is the answer where no CloudFormation can be asked, in the sandbox: it names each macro once, the stack and
// what to do.
func Refuse(stack string, uses []template.MacroUse) diag.Diagnostics {
	var ds diag.Diagnostics
	var seen []string
	for _, u := range uses {
		if slices.Contains(seen, u.Name) {
			continue
		}
		seen = append(seen, u.Name)
		name := u.Name
		if name == "" {
			name = "that it does not name"
		}
		ds = append(ds, diag.Diagnostic{
			Severity: diag.Error, Stack: stack, Path: u.Path,
			Summary: "the template of stack " + stack + " needs the macro " + name,
			Detail:  "macros are run by AWS CloudFormation, and there is no AWS endpoint here",
			Next:    instead(u.Name),
		})
	}
	return ds
}

// instead says how to do without CloudFormation.
func instead(name string) string {
	switch {
	case name == "AWS::Include":
		return "Put the text of the snippet into the template, or deploy to an AWS account."
	case len(name) > len(serverless) && name[:len(serverless)] == serverless:
		return "Translate the template first (the SAM translator writes a plain one), use the CDK's own constructs for functions and APIs, or deploy to an AWS account."
	}
	return fmt.Sprintf("Deploy to an AWS account where the macro is registered, or write out what %s produces.", orIt(name))
}

const serverless = "AWS::Serverless-"

func orIt(name string) string {
	if name == "" {
		return "it"
	}
	return name
}
