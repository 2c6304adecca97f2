package lambda

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// configuration is what UpdateFunctionConfiguration sets, with what a property becomes that is removed. LoggingConfig
// depends on the function's name.
// https://docs.aws.amazon.com/lambda/latest/api/API_UpdateFunctionConfiguration.html
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-lambda-function.html
var (
	configuration = []string{
		"DeadLetterConfig", "Description", "Environment", "EphemeralStorage", "FileSystemConfigs", "Handler", "ImageConfig", "KmsKeyArn",
		"Layers", "LoggingConfig", "MemorySize", "Role", "Runtime", "SnapStart", "Timeout", "TracingConfig", "VpcConfig",
	}
	configurationDefaults = map[string]any{
		"DeadLetterConfig":  map[string]any{"TargetArn": ""},
		"Description":       "",
		"Environment":       map[string]any{"Variables": map[string]any{}},
		"EphemeralStorage":  map[string]any{"Size": 512},
		"FileSystemConfigs": []any{},
		"ImageConfig":       map[string]any{},
		"KmsKeyArn":         "",
		"Layers":            []any{},
		"MemorySize":        128,
		"SnapStart":         map[string]any{"ApplyOn": "None"},
		"Timeout":           3,
		"TracingConfig":     map[string]any{"Mode": "PassThrough"},
		"VpcConfig":         map[string]any{"SubnetIds": []any{}, "SecurityGroupIds": []any{}},
	}
)

// afterwards are the properties that have calls of their own, which the service takes once the function is active.
var afterwards = []string{"ReservedConcurrentExecutions", "RuntimeManagementConfig", "RecursiveLoop"}

func function() direct.Kind[*client] {
	return direct.Kind[*client]{
		Type: "AWS::Lambda::Function", Identity: direct.ByName,
		CreateOnly: []string{"FunctionName", "PackageType", "TenancyConfig"},
		Create:     createFunction, Find: findFunction, Stable: functionLevel,
		Facets: []direct.Facet[*client]{
			{Properties: configuration, Created: true, Defaults: configurationDefaults, Put: putConfiguration, Settle: true},
			{
				Properties: []string{"Code", "Architectures", "Runtime"}, Created: true,
				Defaults: map[string]any{"Architectures": []any{"x86_64"}}, Put: putCode, Settle: true,
			},
			{Properties: []string{"CodeSigningConfigArn"}, Created: true, Put: putCodeSigning},
			{Properties: []string{"ReservedConcurrentExecutions"}, Put: putConcurrency},
			{
				Properties: []string{"RuntimeManagementConfig"}, Defaults: map[string]any{"RuntimeManagementConfig": map[string]any{"UpdateRuntimeOn": "Auto"}},
				Put: func(ctx context.Context, c *call) error {
					return putRuntimeManagement(ctx, c, "RuntimeManagementConfig", c.PhysicalID, nil)
				},
			},
			{
				Properties: []string{"RecursiveLoop"}, Defaults: map[string]any{"RecursiveLoop": "Terminate"},
				Put: func(ctx context.Context, c *call) error {
					_, err := c.Client.PutFunctionRecursionConfig(ctx, &lambda.PutFunctionRecursionConfigInput{
						FunctionName: &c.PhysicalID, RecursiveLoop: types.RecursiveLoop(c.Text("RecursiveLoop")),
					})
					return err
				},
			},
			direct.Tags("Tags",
				func(ctx context.Context, c *call, tags map[string]string) error {
					_, err := c.Client.TagResource(ctx, &lambda.TagResourceInput{Resource: functionARN(c), Tags: tags})
					return err
				},
				func(ctx context.Context, c *call, keys []string) error {
					_, err := c.Client.UntagResource(ctx, &lambda.UntagResourceInput{Resource: functionARN(c), TagKeys: keys})
					return err
				}),
		},
		Unhandled: map[string]string{
			"CapacityProviderConfig":   "for managed instances",
			"DurableConfig":            "the service decides whether a change of it replaces",
			"FunctionScalingConfig":    "for managed instances",
			"PublishToLatestPublished": "for managed instances",
		},
		Read: readFunction,
		// The network interfaces of a function in a VPC go a while after it: the deletion of its subnets and security groups
		// is what waits for them, as they may be shared with other functions.
		// https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html
		Delete: func(ctx context.Context, c *call) error {
			_, err := c.Client.DeleteFunction(ctx, &lambda.DeleteFunctionInput{FunctionName: &c.PhysicalID})
			return err
		},
	}
}

func functionARN(c *call) *string {
	return aws.String("arn:" + direct.Partition(c.Region) + ":lambda:" + c.Region + ":" + c.Account + ":function:" + c.PhysicalID)
}

func createFunction(ctx context.Context, c *call) (string, error) {
	code, err := functionCode(c)
	if err != nil {
		return "", err
	}
	in := lambda.CreateFunctionInput{Code: code, Tags: c.Tags()}
	names := append([]string{"FunctionName", "PackageType", "TenancyConfig", "Architectures", "CodeSigningConfigArn"}, configuration...)
	if err := direct.Into(c.Properties, &in, nil, names...); err != nil {
		return "", err
	}
	if _, err := c.Client.CreateFunction(ctx, &in); err != nil {
		return "", taken(ctx, c, err, findFunction)
	}
	return c.Text("FunctionName"), nil
}

func functionCode(c *call) (*types.FunctionCode, error) {
	parts, _ := c.Properties["Code"].(map[string]any)
	code := new(types.FunctionCode)
	if err := direct.Into(parts, code, nil, "ImageUri", "S3Bucket", "S3Key", "S3ObjectVersion", "S3ObjectStorageMode", "SourceKMSKeyArn"); err != nil {
		return nil, err
	}
	if parts["ZipFile"] == nil {
		return code, nil
	}
	var err error
	code.ZipFile, err = pack(direct.Text(parts["ZipFile"]), c.Text("Runtime"))
	return code, err
}

func findFunction(ctx context.Context, c *call) (direct.Found, error) {
	out, err := c.Client.GetFunction(ctx, &lambda.GetFunctionInput{FunctionName: aws.String(c.Text("FunctionName"))})
	if err != nil {
		return direct.Found{}, err
	}
	found := direct.Found{ID: aws.ToString(out.Configuration.FunctionName), Tags: out.Tags}
	if found.Tags == nil && out.TagsError == nil {
		found.Tags = map[string]string{}
	}
	return found, nil
}

// functionLevel: a function that is pending can be named by everything else in a deploy, so that only a full wait, and
// what is still to be set, is worth the time until it is active. An update is followed to its end, as the next change is refused until then.
// https://docs.aws.amazon.com/lambda/latest/dg/functions-states.html
func functionLevel(ctx context.Context, c *call) (direct.Level, error) {
	created := c.Previous == nil
	active := c.Wait == provider.WaitFull || slices.ContainsFunc(afterwards, c.Has)
	if created && !active {
		return direct.Ready, nil
	}
	out, err := c.Client.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: &c.PhysicalID})
	switch {
	case err != nil:
		return direct.NotYet, err
	case out.State == types.StateFailed:
		return direct.NotYet, failed(string(out.StateReasonCode), out.StateReason, "the function could not be made")
	case !created && out.LastUpdateStatus == types.LastUpdateStatusFailed:
		return direct.NotYet, failed(string(out.LastUpdateStatusReasonCode), out.LastUpdateStatusReason, "the function could not be updated")
	case out.State == types.StatePending || out.LastUpdateStatus == types.LastUpdateStatusInProgress:
		return direct.NotYet, nil
	}
	return direct.Settled, nil
}

func failed(code string, reason *string, otherwise string) error {
	if code == "" {
		code = "Failed"
	}
	if aws.ToString(reason) == "" {
		reason = &otherwise
	}
	return &provider.Error{Kind: provider.KindFailed, Code: code, Message: *reason}
}

// putConfiguration sends what has changed: the service leaves everything else as it is.
func putConfiguration(ctx context.Context, c *call) error {
	names := slices.DeleteFunc(slices.Clone(configuration), func(name string) bool { return !c.Changed(name) })
	if c.Removed("LoggingConfig") {
		c.Properties["LoggingConfig"] = map[string]any{"LogFormat": "Text", "LogGroup": "/aws/lambda/" + c.PhysicalID}
	}
	in := lambda.UpdateFunctionConfigurationInput{FunctionName: &c.PhysicalID}
	if err := direct.Into(c.Properties, &in, nil, names...); err != nil {
		return err
	}
	_, err := c.Client.UpdateFunctionConfiguration(ctx, &in)
	return err
}

// putCode: another runtime alone is a change of the code when the code is inline and its file has another name.
func putCode(ctx context.Context, c *call) error {
	parts, _ := c.Properties["Code"].(map[string]any)
	renamed := parts["ZipFile"] != nil && inlineFile(c.Text("Runtime")) != inlineFile(direct.Text(c.Previous["Runtime"]))
	if !renamed && !c.Changed("Code") && !c.Changed("Architectures") {
		return nil
	}
	code, err := functionCode(c)
	if err != nil {
		return err
	}
	in := lambda.UpdateFunctionCodeInput{
		FunctionName: &c.PhysicalID, ZipFile: code.ZipFile, ImageUri: code.ImageUri, S3Bucket: code.S3Bucket, S3Key: code.S3Key,
		S3ObjectVersion: code.S3ObjectVersion, S3ObjectStorageMode: code.S3ObjectStorageMode, SourceKMSKeyArn: code.SourceKMSKeyArn,
	}
	if c.Changed("Architectures") {
		if err := direct.Into(c.Properties, &in, nil, "Architectures"); err != nil {
			return err
		}
	}
	_, err = c.Client.UpdateFunctionCode(ctx, &in)
	return err
}

func putCodeSigning(ctx context.Context, c *call) error {
	if !c.Has("CodeSigningConfigArn") {
		_, err := c.Client.DeleteFunctionCodeSigningConfig(ctx, &lambda.DeleteFunctionCodeSigningConfigInput{FunctionName: &c.PhysicalID})
		return err
	}
	_, err := c.Client.PutFunctionCodeSigningConfig(ctx, &lambda.PutFunctionCodeSigningConfigInput{
		FunctionName: &c.PhysicalID, CodeSigningConfigArn: aws.String(c.Text("CodeSigningConfigArn")),
	})
	return err
}

func putConcurrency(ctx context.Context, c *call) error {
	if !c.Has("ReservedConcurrentExecutions") {
		_, err := c.Client.DeleteFunctionConcurrency(ctx, &lambda.DeleteFunctionConcurrencyInput{FunctionName: &c.PhysicalID})
		return err
	}
	in := lambda.PutFunctionConcurrencyInput{FunctionName: &c.PhysicalID}
	if err := direct.Into(c.Properties, &in, nil, "ReservedConcurrentExecutions"); err != nil {
		return err
	}
	_, err := c.Client.PutFunctionConcurrency(ctx, &in)
	return err
}

// putRuntimeManagement sets how the runtime of a function, or of a version of it, is updated.
func putRuntimeManagement(ctx context.Context, c *call, property, function string, version *string) error {
	parts, _ := c.Properties[property].(map[string]any)
	in := lambda.PutRuntimeManagementConfigInput{FunctionName: &function, Qualifier: version}
	if err := direct.Into(parts, &in, nil, "UpdateRuntimeOn", "RuntimeVersionArn"); err != nil {
		return err
	}
	_, err := c.Client.PutRuntimeManagementConfig(ctx, &in)
	return err
}
