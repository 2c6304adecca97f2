package s3bucket

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// readBucket reads what the operation is about, or, in a drift check, everything: each configuration costs a call.
func readBucket(ctx context.Context, c *call) (direct.Live, error) {
	tags, err := bucketTags(ctx, c, c.PhysicalID)
	if err != nil {
		return direct.Live{}, err
	}
	live := map[string]any{}
	for _, k := range append(protections(), configurations()...) {
		if len(c.Properties) > 0 && c.Known(k.property) == nil {
			continue
		}
		v, err := k.get(ctx, c)
		if err != nil {
			return direct.Live{}, err
		}
		if v == nil {
			continue
		}
		name := k.property
		if n, ok := renames[name]; ok {
			name = n
		}
		live[name] = v
	}
	properties := direct.From(c.Type, live, renames)
	if properties["ObjectLockConfiguration"] != nil {
		properties["ObjectLockEnabled"] = true
	}
	for _, rule := range objects(object(properties["ReplicationConfiguration"])["Rules"]) {
		if rule["Filter"] == nil && rule["Prefix"] == nil {
			rule["Filter"] = map[string]any{"Prefix": ""} // which is for all objects
		}
	}
	properties["BucketName"], properties["Tags"] = c.PhysicalID, direct.TagModel(tags)
	return direct.Live{Properties: properties, Attributes: attributes(c.PhysicalID, c.Region)}, nil
}

// protections are read like the configurations, but put in an order of their own.
func protections() []configuration {
	return []configuration{
		{property: "VersioningConfiguration", get: func(ctx context.Context, c *call) (any, error) {
			out, err := c.Client.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: &c.PhysicalID})
			if err != nil || out.Status == "" {
				return nil, err
			}
			return map[string]any{"Status": out.Status}, nil
		}},
		{property: "ObjectLockConfiguration", get: func(ctx context.Context, c *call) (any, error) {
			out, err := c.Client.GetObjectLockConfiguration(ctx, &s3.GetObjectLockConfigurationInput{Bucket: &c.PhysicalID})
			if err != nil {
				return nil, absent(err, "ObjectLockConfigurationNotFoundError")
			}
			return plain(out.ObjectLockConfiguration), nil
		}},
		{property: "OwnershipControls", get: func(ctx context.Context, c *call) (any, error) {
			out, err := c.Client.GetBucketOwnershipControls(ctx, &s3.GetBucketOwnershipControlsInput{Bucket: &c.PhysicalID})
			if err != nil {
				return nil, absent(err, "OwnershipControlsNotFoundError")
			}
			return plain(out.OwnershipControls), nil
		}},
		{property: "PublicAccessBlockConfiguration", get: func(ctx context.Context, c *call) (any, error) {
			out, err := c.Client.GetPublicAccessBlock(ctx, &s3.GetPublicAccessBlockInput{Bucket: &c.PhysicalID})
			if err != nil {
				return nil, absent(err, "NoSuchPublicAccessBlockConfiguration")
			}
			return plain(out.PublicAccessBlockConfiguration), nil
		}},
		{property: "ReplicationConfiguration", get: func(ctx context.Context, c *call) (any, error) {
			out, err := c.Client.GetBucketReplication(ctx, &s3.GetBucketReplicationInput{Bucket: &c.PhysicalID})
			if err != nil {
				return nil, absent(err, "ReplicationConfigurationNotFoundError")
			}
			return plain(out.ReplicationConfiguration), nil
		}},
	}
}

func getEncryption(ctx context.Context, c *call) (any, error) {
	out, err := c.Client.GetBucketEncryption(ctx, &s3.GetBucketEncryptionInput{Bucket: &c.PhysicalID})
	if err != nil {
		return nil, absent(err, "ServerSideEncryptionConfigurationNotFoundError")
	}
	return plain(out.ServerSideEncryptionConfiguration), nil
}

func getLifecycle(ctx context.Context, c *call) (any, error) {
	out, err := c.Client.GetBucketLifecycleConfiguration(ctx, &s3.GetBucketLifecycleConfigurationInput{Bucket: &c.PhysicalID})
	if err != nil {
		return nil, absent(err, "NoSuchLifecycleConfiguration")
	}
	var rules []any
	for _, r := range out.Rules {
		rules = append(rules, ruleModel(plain(r)))
	}
	model := map[string]any{"Rules": rules}
	if out.TransitionDefaultMinimumObjectSize != "" {
		model["TransitionDefaultMinimumObjectSize"] = out.TransitionDefaultMinimumObjectSize
	}
	return model, nil
}

func getCors(ctx context.Context, c *call) (any, error) {
	out, err := c.Client.GetBucketCors(ctx, &s3.GetBucketCorsInput{Bucket: &c.PhysicalID})
	if err != nil {
		return nil, absent(err, "NoSuchCORSConfiguration")
	}
	return map[string]any{"CorsRules": out.CORSRules}, nil
}

func getWebsite(ctx context.Context, c *call) (any, error) {
	out, err := c.Client.GetBucketWebsite(ctx, &s3.GetBucketWebsiteInput{Bucket: &c.PhysicalID})
	if err != nil {
		return nil, absent(err, "NoSuchWebsiteConfiguration")
	}
	return websiteModel(plain(out)), nil
}

func getLogging(ctx context.Context, c *call) (any, error) {
	out, err := c.Client.GetBucketLogging(ctx, &s3.GetBucketLoggingInput{Bucket: &c.PhysicalID})
	if err != nil || out.LoggingEnabled == nil {
		return nil, err
	}
	return plain(out.LoggingEnabled), nil
}

func getAcceleration(ctx context.Context, c *call) (any, error) {
	out, err := c.Client.GetBucketAccelerateConfiguration(ctx, &s3.GetBucketAccelerateConfigurationInput{Bucket: &c.PhysicalID})
	if err != nil || out.Status == "" {
		return nil, err
	}
	return map[string]any{"Status": out.Status}, nil
}

func getNotifications(ctx context.Context, c *call) (any, error) {
	out, err := c.Client.GetBucketNotificationConfiguration(ctx, &s3.GetBucketNotificationConfigurationInput{Bucket: &c.PhysicalID})
	if err != nil {
		return nil, err
	}
	return notificationModel(plain(out)), nil
}

func getInventories(ctx context.Context, c *call) (any, error) {
	var list []any
	in := s3.ListBucketInventoryConfigurationsInput{Bucket: &c.PhysicalID}
	for {
		out, err := c.Client.ListBucketInventoryConfigurations(ctx, &in)
		if err != nil {
			return nil, absent(err, "NoSuchConfiguration")
		}
		for _, k := range out.InventoryConfigurationList {
			list = append(list, inventoryModel(plain(k)))
		}
		if out.NextContinuationToken == nil {
			return list, nil
		}
		in.ContinuationToken = out.NextContinuationToken
	}
}

// suffixes are the domains of the partitions, where they are not amazonaws.com.
// https://github.com/aws/aws-sdk-go-v2/blob/main/internal/endpoints/awsrulesfn/partitions.json
var suffixes = map[string]string{
	"aws-cn": "amazonaws.com.cn", "aws-eusc": "amazonaws.eu", "aws-iso": "c2s.ic.gov", "aws-iso-b": "sc2s.sgov.gov",
	"aws-iso-e": "cloud.adc-e.uk", "aws-iso-f": "csp.hci.ic.gov",
}

// dashed are the regions whose websites have a dash before the region.
// https://docs.aws.amazon.com/general/latest/gr/s3.html#s3_website_region_endpoints
var dashed = []string{
	"us-east-1", "us-west-1", "us-west-2", "ap-southeast-1", "ap-southeast-2", "ap-northeast-1", "eu-west-1", "sa-east-1", "us-gov-west-1",
}

func attributes(name, region string) map[string]any {
	partition := direct.Partition(region)
	suffix := suffixes[partition]
	if suffix == "" {
		suffix = "amazonaws.com"
	}
	separator := "."
	if slices.Contains(dashed, region) {
		separator = "-"
	}
	return map[string]any{
		"Arn":                 fmt.Sprintf("arn:%s:s3:::%s", partition, name),
		"DomainName":          strings.Join([]string{name, "s3", suffix}, "."),
		"DualStackDomainName": strings.Join([]string{name, "s3.dualstack", region, suffix}, "."),
		"RegionalDomainName":  strings.Join([]string{name, "s3", region, suffix}, "."),
		"WebsiteURL":          fmt.Sprintf("http://%s.s3-website%s%s.%s", name, separator, region, suffix),
	}
}
