package template

import (
	"fmt"
	"regexp"
	"strings"
)

// SubPart is a piece of the body of Fn::Sub: literal text, or a placeholder.
type SubPart struct {
	Text string // literal text, with ${!x} already turned into ${x}
	// Name is the placeholder's whole name: "Bucket", "DB.Endpoint.Address", "AWS::Region". "" for text.
	Name string
	// Target and Attribute are Name split at its first dot.
	Target, Attribute string
}

// placeholder is what CloudFormation accepts between ${ and }: "variable names in Fn::Sub syntax must contain
// only alphanumeric characters, underscores, periods, and colons".
var placeholder = regexp.MustCompile(`^[A-Za-z0-9_.:]+$`)

// ParseSub splits the body of Fn::Sub
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-sub.html).
// A "${" that is never closed is text. The error says which placeholder, by number, is malformed: the body
// itself may hold secrets and is not quoted.
func ParseSub(body string) ([]SubPart, error) {
	var parts []SubPart
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			parts = append(parts, SubPart{Text: text.String()})
			text.Reset()
		}
	}
	for n := 1; ; n++ {
		start := strings.Index(body, "${")
		if start < 0 {
			break
		}
		length := strings.IndexByte(body[start:], '}')
		if length < 0 {
			break
		}
		text.WriteString(body[:start])
		name := body[start+2 : start+length]
		body = body[start+length+1:]
		if literal, ok := strings.CutPrefix(name, "!"); ok {
			text.WriteString("${" + literal + "}")
			continue
		}
		if !placeholder.MatchString(name) {
			return nil, fmt.Errorf("placeholder %d is not a name: letters, digits, '_', '.' and ':' are allowed; ${!…} stands for a literal ${…}", n)
		}
		flush()
		target, attribute, _ := strings.Cut(name, ".")
		if target == "" || (attribute == "" && strings.Contains(name, ".")) {
			return nil, fmt.Errorf("placeholder %d has an empty name before or after its dot", n)
		}
		parts = append(parts, SubPart{Name: name, Target: target, Attribute: attribute})
	}
	text.WriteString(body)
	flush()
	return parts, nil
}
