package lambda

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

var layerProperties = []string{"CompatibleArchitectures", "CompatibleRuntimes", "Content", "Description", "LayerName", "LicenseInfo"}

// layerVersion: a version has no name of its own, no tags and no client token. One that an earlier call may have made is
// known by all that can be read of it, with the archive that it was made from.
func layerVersion() direct.Kind[*client] {
	return direct.Kind[*client]{
		Type: "AWS::Lambda::LayerVersion", Identity: direct.ByMark, CreateOnly: layerProperties,
		Create: func(ctx context.Context, c *call) (string, error) {
			var in lambda.PublishLayerVersionInput
			if err := direct.Into(c.Properties, &in, nil, layerProperties...); err != nil {
				return "", err
			}
			out, err := c.Client.PublishLayerVersion(ctx, &in)
			if err != nil {
				return "", err
			}
			return aws.ToString(out.LayerVersionArn), nil
		},
		Find: findLayerVersion,
		Read: func(ctx context.Context, c *call) (direct.Live, error) {
			layer, number, err := layerOf(c.PhysicalID)
			if err != nil {
				return direct.Live{}, err
			}
			out, err := c.Client.GetLayerVersion(ctx, &lambda.GetLayerVersionInput{LayerName: &layer, VersionNumber: &number})
			if err != nil {
				return direct.Live{}, err
			}
			properties := direct.From(c.Type, out, nil)
			delete(properties, "Content") // what the service tells of it is not what it was given
			properties["LayerName"] = layer
			if known := direct.Text(c.Known("LayerName")); strings.HasSuffix(known, ":layer:"+layer) {
				properties["LayerName"] = known
			}
			return direct.Live{Properties: properties, Attributes: map[string]any{"LayerVersionArn": c.PhysicalID}}, nil
		},
		Delete: func(ctx context.Context, c *call) error {
			layer, number, err := layerOf(c.PhysicalID)
			if err != nil {
				return err
			}
			_, err = c.Client.DeleteLayerVersion(ctx, &lambda.DeleteLayerVersionInput{LayerName: &layer, VersionNumber: &number})
			return err
		},
	}
}

// layerOf splits the ARN of a layer version: the layer's name and the number.
func layerOf(arn string) (layer string, number int64, err error) {
	i := strings.LastIndexByte(arn, ':')
	if i < 0 || strings.Count(arn, ":") != 7 {
		return "", 0, direct.Invalid("the physical id is not the ARN of a layer version")
	}
	if number, err = strconv.ParseInt(arn[i+1:], 10, 64); err != nil {
		return "", 0, direct.Invalid("the physical id is not the ARN of a layer version")
	}
	layer = arn[:i]
	return layer[strings.LastIndexByte(layer, ':')+1:], number, nil
}

// findLayerVersion looks at the newest version only: what an earlier call of this operation has made is at the top.
func findLayerVersion(ctx context.Context, c *call) (direct.Found, error) {
	name := c.Text("LayerName")
	list, err := c.Client.ListLayerVersions(ctx, &lambda.ListLayerVersionsInput{LayerName: &name})
	if err != nil || len(list.LayerVersions) == 0 {
		return direct.Found{}, err
	}
	newest := list.LayerVersions[0]
	for _, v := range list.LayerVersions {
		if v.Version > newest.Version {
			newest = v
		}
	}
	live := direct.From(c.Type, newest, nil)
	for _, property := range []string{"CompatibleArchitectures", "CompatibleRuntimes", "Description", "LicenseInfo"} {
		if !direct.Same(c.Type, property, live[property], c.Properties[property]) {
			return direct.Found{}, nil
		}
	}
	out, err := c.Client.GetLayerVersion(ctx, &lambda.GetLayerVersionInput{LayerName: &name, VersionNumber: &newest.Version})
	if err != nil || out.Content == nil {
		return direct.Found{}, err
	}
	same, err := madeFrom(ctx, c, aws.ToString(out.Content.CodeSha256), out.Content.CodeSize)
	if err != nil || !same {
		return direct.Found{}, err
	}
	return direct.Found{ID: aws.ToString(out.LayerVersionArn)}, nil
}

// madeFrom reports whether an archive that the service keeps is the one that the template names.
func madeFrom(ctx context.Context, c *call, digest string, size int64) (bool, error) {
	var in s3.GetObjectInput
	content, _ := c.Properties["Content"].(map[string]any)
	if err := direct.Into(content, &in, direct.Renames{"S3Bucket": "Bucket", "S3Key": "Key", "S3ObjectVersion": "VersionId"}, "S3Bucket", "S3Key", "S3ObjectVersion"); err != nil {
		return false, err
	}
	out, err := c.Client.s3.GetObject(ctx, &in)
	if err != nil {
		return false, err
	}
	defer out.Body.Close()
	if out.ContentLength != nil && *out.ContentLength != size {
		return false, nil
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, out.Body); err != nil {
		return false, err
	}
	return base64.StdEncoding.EncodeToString(sum.Sum(nil)) == digest, nil
}
