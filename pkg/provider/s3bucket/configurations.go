package s3bucket

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// renames are what the API calls otherwise than CloudFormation.
var renames = direct.Renames{
	"AccelerateConfiguration/AccelerationStatus":                                         "Status",
	"BucketEncryption":                                                                   "ServerSideEncryptionConfiguration",
	"BucketEncryption/ServerSideEncryptionConfiguration":                                 "Rules",
	"BucketEncryption/ServerSideEncryptionConfiguration/*/ServerSideEncryptionByDefault": "ApplyServerSideEncryptionByDefault",
	"CorsConfiguration/CorsRules/*/ExposedHeaders":                                       "ExposeHeaders",
	"CorsConfiguration/CorsRules/*/MaxAge":                                               "MaxAgeSeconds",
	"ReplicationConfiguration/Rules/*/Filter/TagFilter":                                  "Tag",
	"ReplicationConfiguration/Rules/*/Filter/And/TagFilters":                             "Tags",
	"LoggingConfiguration/DestinationBucketName":                                         "TargetBucket",
	"LoggingConfiguration/LogFilePrefix":                                                 "TargetPrefix",
	"WebsiteConfiguration/RoutingRules/*/RedirectRule":                                   "Redirect",
	"WebsiteConfiguration/RoutingRules/*/RoutingRuleCondition":                           "Condition",
}

// configuration is what is set and read of a bucket by calls of its own.
type configuration struct {
	property string
	// put sets it to the template's, drop goes back to what a new bucket has.
	put, drop func(ctx context.Context, c *call) error
	// get reads it, in the API's names; nil: there is none.
	get func(ctx context.Context, c *call) (any, error)
}

// configurations are in the order in which they are put: replication needs versions, and notifications nothing else.
func configurations() []configuration {
	return []configuration{
		{"BucketEncryption", putEncryption, dropEncryption, getEncryption},
		{"LifecycleConfiguration", putLifecycle, dropLifecycle, getLifecycle},
		{"CorsConfiguration", putCors, dropCors, getCors},
		{"WebsiteConfiguration", putWebsite, dropWebsite, getWebsite},
		{"LoggingConfiguration", putLogging, dropLogging, getLogging},
		{"AccelerateConfiguration", putAcceleration, dropAcceleration, getAcceleration},
		{"NotificationConfiguration", putNotifications, dropNotifications, getNotifications},
		{"InventoryConfigurations", putInventories, putInventories, getInventories},
	}
}

// facets: a bucket that is replicated must keep its versions, so that replication ends before they do and begins after. The lock
// needs versions, too.
func facets() []direct.Facet[*s3.Client] {
	list := []direct.Facet[*s3.Client]{
		{Properties: []string{"OwnershipControls", "PublicAccessBlockConfiguration", "AccessControl"}, Put: busy(putAccess)},
		{Properties: []string{"ReplicationConfiguration"}, Put: busy(func(ctx context.Context, c *call) error {
			if c.Has("ReplicationConfiguration") {
				return nil
			}
			_, err := c.Client.DeleteBucketReplication(ctx, &s3.DeleteBucketReplicationInput{Bucket: &c.PhysicalID})
			return err
		})},
		{
			Properties: []string{"VersioningConfiguration"}, Put: busy(putVersioning),
			// What has had versions can't go back to never having had any.
			Defaults: map[string]any{"VersioningConfiguration": map[string]any{"Status": "Suspended"}},
		},
		{Properties: []string{"ObjectLockConfiguration", "ObjectLockEnabled"}, Put: busy(putLock)},
		{Properties: []string{"ReplicationConfiguration"}, Put: busy(func(ctx context.Context, c *call) error {
			if !c.Has("ReplicationConfiguration") {
				return nil
			}
			in := s3.PutBucketReplicationInput{Bucket: &c.PhysicalID}
			if err := direct.Into(c.Properties, &in, renames, "ReplicationConfiguration"); err != nil {
				return err
			}
			_, err := c.Client.PutBucketReplication(ctx, &in)
			return err
		})},
	}
	for _, k := range configurations() {
		list = append(list, direct.Facet[*s3.Client]{Properties: []string{k.property}, Put: busy(func(ctx context.Context, c *call) error {
			if c.Has(k.property) {
				return k.put(ctx, c)
			}
			return k.drop(ctx, c)
		})})
	}
	return append(list, direct.Facet[*s3.Client]{Properties: []string{"Tags"}, Created: true, Put: busy(putTags)})
}

// enforced is the ownership of a new bucket: nobody but its owner owns what is in it, and there are no access control lists.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/about-object-ownership.html
const enforced = string(types.ObjectOwnershipBucketOwnerEnforced)

// ownership is what the template says of who owns objects, "" when it says nothing.
func ownership(c *call) string {
	controls, _ := c.Properties["OwnershipControls"].(map[string]any)
	rules, _ := controls["Rules"].([]any)
	if len(rules) == 0 {
		return ""
	}
	rule, _ := rules[0].(map[string]any)
	return direct.Text(rule["ObjectOwnership"])
}

// putAccess: lists can be given only while they are in force and not blocked, and they can't be taken out of force while they give
// anything to others. So what gives more comes last, and what gives less first.
func putAccess(ctx context.Context, c *call) error {
	list := cannedACLs[c.Text("AccessControl")]
	if list == "" {
		list = types.BucketCannedACLPrivate
	}
	if list == types.BucketCannedACLPrivate {
		// Where lists are not in force there is none to take back.
		if err := putACL(ctx, c, list); absent(err, "AccessControlListNotSupported") != nil {
			return err
		}
	}
	if c.Previous != nil && c.Changed("OwnershipControls") { // Create has set them
		owner := ownership(c)
		if owner == "" {
			owner = enforced
		}
		_, err := c.Client.PutBucketOwnershipControls(ctx, &s3.PutBucketOwnershipControlsInput{
			Bucket: &c.PhysicalID, OwnershipControls: &types.OwnershipControls{Rules: []types.OwnershipControlsRule{{ObjectOwnership: types.ObjectOwnership(owner)}}},
		})
		if err != nil {
			return err
		}
	}
	if c.Changed("PublicAccessBlockConfiguration") {
		// A new bucket blocks everything; what a configuration does not name is not blocked.
		// https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-control-block-public-access.html
		in := s3.PutPublicAccessBlockInput{Bucket: &c.PhysicalID, PublicAccessBlockConfiguration: &types.PublicAccessBlockConfiguration{
			BlockPublicAcls: aws.Bool(true), BlockPublicPolicy: aws.Bool(true), IgnorePublicAcls: aws.Bool(true), RestrictPublicBuckets: aws.Bool(true),
		}}
		if c.Has("PublicAccessBlockConfiguration") {
			in.PublicAccessBlockConfiguration = nil
			if err := direct.Into(c.Properties, &in, nil, "PublicAccessBlockConfiguration"); err != nil {
				return err
			}
		}
		if _, err := c.Client.PutPublicAccessBlock(ctx, &in); err != nil {
			return err
		}
	}
	if list != types.BucketCannedACLPrivate {
		return putACL(ctx, c, list)
	}
	return nil
}

// cannedACLs are the names that the API has for AccessControl. The service takes BucketOwnerRead and BucketOwnerFullControl for objects, and
// ignores them for buckets.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/acl-overview.html#canned-acl
var cannedACLs = map[string]types.BucketCannedACL{
	"AuthenticatedRead": types.BucketCannedACLAuthenticatedRead,
	"AwsExecRead":       "aws-exec-read",
	"LogDeliveryWrite":  "log-delivery-write",
	"PublicRead":        types.BucketCannedACLPublicRead,
	"PublicReadWrite":   types.BucketCannedACLPublicReadWrite,
}

// putACL sends a list only when it is another one than before: what is private needs no list.
func putACL(ctx context.Context, c *call, list types.BucketCannedACL) error {
	if before := cannedACLs[direct.Text(c.Previous["AccessControl"])]; before == list || before == "" && list == types.BucketCannedACLPrivate {
		return nil
	}
	_, err := c.Client.PutBucketAcl(ctx, &s3.PutBucketAclInput{Bucket: &c.PhysicalID, ACL: list})
	return err
}

func putVersioning(ctx context.Context, c *call) error {
	in := s3.PutBucketVersioningInput{Bucket: &c.PhysicalID}
	if err := direct.Into(c.Properties, &in, nil, "VersioningConfiguration"); err != nil {
		return err
	}
	_, err := c.Client.PutBucketVersioning(ctx, &in)
	return err
}

// putLock: a lock once given stays; only its rule goes.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-lock-configure.html
func putLock(ctx context.Context, c *call) error {
	if c.Previous == nil && !c.Has("ObjectLockConfiguration") {
		return nil // Create has given it
	}
	if c.Previous != nil && direct.Text(c.Previous["ObjectLockEnabled"]) == "true" && c.Text("ObjectLockEnabled") != "true" {
		return &provider.Error{Kind: provider.KindImmutable, Code: "NotUpdatable", Message: "the object lock of a bucket can't be taken away"}
	}
	in := s3.PutObjectLockConfigurationInput{Bucket: &c.PhysicalID}
	if err := direct.Into(c.Properties, &in, nil, "ObjectLockConfiguration"); err != nil {
		return err
	}
	if in.ObjectLockConfiguration == nil {
		in.ObjectLockConfiguration = new(types.ObjectLockConfiguration)
	}
	in.ObjectLockConfiguration.ObjectLockEnabled = types.ObjectLockEnabledEnabled
	_, err := c.Client.PutObjectLockConfiguration(ctx, &in)
	return err
}

func putEncryption(ctx context.Context, c *call) error {
	in := s3.PutBucketEncryptionInput{Bucket: &c.PhysicalID}
	if err := direct.Into(c.Properties, &in, renames, "BucketEncryption"); err != nil {
		return err
	}
	_, err := c.Client.PutBucketEncryption(ctx, &in)
	return err
}

// dropEncryption goes back to the keys of the service.
// https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketEncryption.html
func dropEncryption(ctx context.Context, c *call) error {
	_, err := c.Client.DeleteBucketEncryption(ctx, &s3.DeleteBucketEncryptionInput{Bucket: &c.PhysicalID})
	return err
}

func putCors(ctx context.Context, c *call) error {
	in := s3.PutBucketCorsInput{Bucket: &c.PhysicalID}
	if err := direct.Into(c.Properties, &in, renames, "CorsConfiguration"); err != nil {
		return err
	}
	_, err := c.Client.PutBucketCors(ctx, &in)
	return err
}

func dropCors(ctx context.Context, c *call) error {
	_, err := c.Client.DeleteBucketCors(ctx, &s3.DeleteBucketCorsInput{Bucket: &c.PhysicalID})
	return err
}

func putWebsite(ctx context.Context, c *call) error {
	site, _ := c.Properties["WebsiteConfiguration"].(map[string]any)
	in := s3.PutBucketWebsiteInput{Bucket: &c.PhysicalID}
	if err := direct.Into(map[string]any{"WebsiteConfiguration": websiteInput(site)}, &in, renames); err != nil {
		return err
	}
	_, err := c.Client.PutBucketWebsite(ctx, &in)
	return err
}

func dropWebsite(ctx context.Context, c *call) error {
	_, err := c.Client.DeleteBucketWebsite(ctx, &s3.DeleteBucketWebsiteInput{Bucket: &c.PhysicalID})
	return err
}

// putLogging: without a destination a bucket logs into itself. The API wants a prefix, be it an empty one.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-s3-bucket-loggingconfiguration.html
func putLogging(ctx context.Context, c *call) error {
	var target struct{ LoggingConfiguration types.LoggingEnabled }
	if err := direct.Into(c.Properties, &target, renames, "LoggingConfiguration"); err != nil {
		return err
	}
	to := &target.LoggingConfiguration
	if to.TargetBucket == nil {
		to.TargetBucket = &c.PhysicalID
	}
	if to.TargetPrefix == nil {
		to.TargetPrefix = aws.String("")
	}
	_, err := c.Client.PutBucketLogging(ctx, &s3.PutBucketLoggingInput{Bucket: &c.PhysicalID, BucketLoggingStatus: &types.BucketLoggingStatus{LoggingEnabled: to}})
	return err
}

func dropLogging(ctx context.Context, c *call) error {
	_, err := c.Client.PutBucketLogging(ctx, &s3.PutBucketLoggingInput{Bucket: &c.PhysicalID, BucketLoggingStatus: new(types.BucketLoggingStatus)})
	return err
}

func putAcceleration(ctx context.Context, c *call) error {
	in := s3.PutBucketAccelerateConfigurationInput{Bucket: &c.PhysicalID}
	if err := direct.Into(c.Properties, &in, renames, "AccelerateConfiguration"); err != nil {
		return err
	}
	_, err := c.Client.PutBucketAccelerateConfiguration(ctx, &in)
	return err
}

// dropAcceleration: what has been accelerated can only be suspended.
func dropAcceleration(ctx context.Context, c *call) error {
	_, err := c.Client.PutBucketAccelerateConfiguration(ctx, &s3.PutBucketAccelerateConfigurationInput{
		Bucket: &c.PhysicalID, AccelerateConfiguration: &types.AccelerateConfiguration{Status: types.BucketAccelerateStatusSuspended},
	})
	return err
}

func putLifecycle(ctx context.Context, c *call) error {
	given, _ := c.Properties["LifecycleConfiguration"].(map[string]any)
	in := s3.PutBucketLifecycleConfigurationInput{Bucket: &c.PhysicalID}
	if size := direct.Text(given["TransitionDefaultMinimumObjectSize"]); size != "" {
		in.TransitionDefaultMinimumObjectSize = types.TransitionDefaultMinimumObjectSize(size)
	}
	var rules []any
	for _, r := range objects(given["Rules"]) {
		rules = append(rules, ruleInput(r))
	}
	if err := direct.Into(map[string]any{"LifecycleConfiguration": map[string]any{"Rules": rules}}, &in, nil); err != nil {
		return err
	}
	_, err := c.Client.PutBucketLifecycleConfiguration(ctx, &in)
	return err
}

func dropLifecycle(ctx context.Context, c *call) error {
	_, err := c.Client.DeleteBucketLifecycle(ctx, &s3.DeleteBucketLifecycleInput{Bucket: &c.PhysicalID})
	return err
}

func putNotifications(ctx context.Context, c *call) error {
	given, _ := c.Properties["NotificationConfiguration"].(map[string]any)
	in := s3.PutBucketNotificationConfigurationInput{Bucket: &c.PhysicalID}
	if err := direct.Into(map[string]any{"NotificationConfiguration": notificationInput(given)}, &in, nil); err != nil {
		return err
	}
	_, err := c.Client.PutBucketNotificationConfiguration(ctx, &in)
	return err
}

func dropNotifications(ctx context.Context, c *call) error {
	_, err := c.Client.PutBucketNotificationConfiguration(ctx, &s3.PutBucketNotificationConfigurationInput{
		Bucket: &c.PhysicalID, NotificationConfiguration: new(types.NotificationConfiguration),
	})
	return err
}

// putInventories puts each inventory that differs, and takes away what the template no longer gives.
func putInventories(ctx context.Context, c *call) error {
	now := map[string]bool{}
	for _, given := range objects(c.Properties["InventoryConfigurations"]) {
		id := direct.Text(given["Id"])
		now[id] = true
		in := s3.PutBucketInventoryConfigurationInput{Bucket: &c.PhysicalID, Id: &id}
		if err := direct.Into(map[string]any{"InventoryConfiguration": inventoryInput(given)}, &in, nil); err != nil {
			return err
		}
		if _, err := c.Client.PutBucketInventoryConfiguration(ctx, &in); err != nil {
			return err
		}
	}
	for _, before := range objects(c.Previous["InventoryConfigurations"]) {
		id := direct.Text(before["Id"])
		if now[id] {
			continue
		}
		_, err := c.Client.DeleteBucketInventoryConfiguration(ctx, &s3.DeleteBucketInventoryConfigurationInput{Bucket: &c.PhysicalID, Id: &id})
		if absent(err, "NoSuchConfiguration") != nil {
			return err
		}
	}
	return nil
}
