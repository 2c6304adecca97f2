package stepfunctions

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// definitionProperties are the three ways to give a definition, and what is put into it.
var definitionProperties = []string{"Definition", "DefinitionS3Location", "DefinitionString", "DefinitionSubstitutions"}

// maxDefinition is the size that the service takes at most.
// https://docs.aws.amazon.com/step-functions/latest/apireference/API_CreateStateMachine.html
const maxDefinition = 1 << 20

// definition is the text of a state machine, with the substitutions made.
func definition(ctx context.Context, c *call, properties map[string]any) (string, error) {
	given := 0
	for _, name := range definitionProperties[:3] {
		if properties[name] != nil {
			given++
		}
	}
	if given != 1 {
		return "", direct.Invalid("a state machine needs one of Definition, DefinitionString and DefinitionS3Location")
	}
	if location, ok := properties["DefinitionS3Location"].(map[string]any); ok {
		text, err := object(ctx, c, location)
		return substituted(text, properties["DefinitionSubstitutions"]), err
	}
	text, err := inline(properties)
	return text, err
}

// inline is the text of a definition that the template holds; "" when it is elsewhere.
func inline(properties map[string]any) (string, error) {
	for _, name := range []string{"DefinitionString", "Definition"} {
		if v := properties[name]; v != nil {
			text, err := direct.Document(v)
			return substituted(text, properties["DefinitionSubstitutions"]), err
		}
	}
	return "", nil
}

// substituted writes values for ${name}.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-stepfunctions-statemachine.html
func substituted(text string, v any) string {
	values, _ := v.(map[string]any)
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		pairs = append(pairs, "${"+name+"}", direct.Text(values[name]))
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

func object(ctx context.Context, c *call, location map[string]any) (string, error) {
	in := s3.GetObjectInput{Bucket: aws.String(direct.Text(location["Bucket"])), Key: aws.String(direct.Text(location["Key"]))}
	if version := direct.Text(location["Version"]); version != "" {
		in.VersionId = &version
	}
	out, err := c.Client.objects.GetObject(ctx, &in)
	if direct.Errors(objectErrors).IsKind(err, provider.KindNotFound) {
		return "", direct.Invalid("there is no object at DefinitionS3Location")
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = out.Body.Close() }() // it has been read, or its error counts
	raw, err := io.ReadAll(io.LimitReader(out.Body, maxDefinition+1))
	if err != nil {
		return "", fmt.Errorf("reading the definition from S3: %w", err)
	}
	if len(raw) > maxDefinition {
		return "", direct.Invalid("the object at DefinitionS3Location is longer than a definition can be")
	}
	return string(raw), nil
}

// objectErrors are the codes of S3 for what is not there.
// https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html#ErrorCodeList
var objectErrors = map[string]provider.Kind{
	"NoSuchBucket": provider.KindNotFound, "NoSuchKey": provider.KindNotFound, "NoSuchVersion": provider.KindNotFound,
}

// readDefinition writes the live definition as the record does. What the record has in S3 is taken to be the same: reading that
// object each time tells nothing of the state machine.
func readDefinition(c *call, live string, properties map[string]any) {
	recorded := map[string]any{}
	for _, name := range definitionProperties {
		if v := c.Known(name); v != nil {
			recorded[name] = v
		}
	}
	text, err := inline(recorded)
	switch {
	case recorded["DefinitionS3Location"] != nil, err == nil && text != "" && direct.Same("", "", live, text):
		maps.Copy(properties, recorded)
	case recorded["Definition"] != nil:
		properties["Definition"] = direct.ParseDocument(&live)
	default:
		properties["DefinitionString"] = live
	}
}
