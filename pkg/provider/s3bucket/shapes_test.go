package s3bucket

import (
	"encoding/json"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	v, ok := direct.ParseDocument(&text).(map[string]any)
	if !ok {
		t.Fatalf("%s is no object", text)
	}
	return v
}

func written(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// through is a template's object as it comes back from the API.
func through[T any](t *testing.T, given map[string]any, input, model func(map[string]any) map[string]any) string {
	t.Helper()
	var sent T
	if err := direct.Into(input(given), &sent, renames); err != nil {
		t.Fatal(err)
	}
	return written(t, model(plain(sent)))
}

func TestRulesOfALifecycle(t *testing.T) {
	for name, c := range map[string]struct{ given, back string }{
		"one condition":       {`{"Status":"Enabled","Prefix":"a/","ExpirationInDays":1}`, `{"ExpirationInDays":1,"Prefix":"a/","Status":"Enabled"}`},
		"one tag":             {`{"Status":"Enabled","TagFilters":[{"Key":"k","Value":"v"}],"ExpiredObjectDeleteMarker":true}`, `{"ExpiredObjectDeleteMarker":true,"Status":"Enabled","TagFilters":[{"Key":"k","Value":"v"}]}`},
		"several conditions":  {`{"Status":"Enabled","Prefix":"a/","ObjectSizeLessThan":"9","TagFilters":[{"Key":"k","Value":"v"}]}`, `{"ObjectSizeLessThan":9,"Prefix":"a/","Status":"Enabled","TagFilters":[{"Key":"k","Value":"v"}]}`},
		"sizes alone":         {`{"Status":"Enabled","ObjectSizeGreaterThan":1,"ObjectSizeLessThan":9}`, `{"ObjectSizeGreaterThan":1,"ObjectSizeLessThan":9,"Status":"Enabled"}`},
		"a date":              {`{"Status":"Enabled","ExpirationDate":"2027-01-01T00:00:00Z"}`, `{"ExpirationDate":"2027-01-01T00:00:00Z","Status":"Enabled"}`},
		"one transition":      {`{"Status":"Enabled","Transition":{"StorageClass":"Glacier","TransitionInDays":3}}`, `{"Status":"Enabled","Transitions":[{"StorageClass":"GLACIER","TransitionInDays":3}]}`},
		"old versions":        {`{"Status":"Enabled","NoncurrentVersionExpirationInDays":"4"}`, `{"NoncurrentVersionExpiration":{"NoncurrentDays":4},"Status":"Enabled"}`},
		"old versions' moves": {`{"Status":"Enabled","NoncurrentVersionTransition":{"StorageClass":"GLACIER_IR","TransitionInDays":5}}`, `{"NoncurrentVersionTransitions":[{"StorageClass":"GLACIER_IR","TransitionInDays":5}],"Status":"Enabled"}`},
	} {
		if got := through[types.LifecycleRule](t, parse(t, c.given), ruleInput, ruleModel); got != c.back {
			t.Errorf("%s comes back as %s, want %s", name, got, c.back)
		}
	}
	if all := filterInput(map[string]any{"Status": "Enabled"}); written(t, all) != `{"Prefix":""}` {
		t.Errorf("a rule for all objects has the filter %s", written(t, all))
	}
}

func TestInventoriesAndSites(t *testing.T) {
	given := `{"Destination":{"BucketAccountId":"1","BucketArn":"arn:aws:s3:::b","Format":"CSV","Prefix":"p"},"Enabled":false,"Id":"i","IncludedObjectVersions":"All","OptionalFields":["Size"],"Prefix":"in/","ScheduleFrequency":"Daily"}`
	if got := through[types.InventoryConfiguration](t, parse(t, given), inventoryInput, inventoryModel); got != given {
		t.Errorf("an inventory comes back as %s", got)
	}
	given = `{"ErrorDocument":"e.html","IndexDocument":"i.html"}`
	if got := through[types.WebsiteConfiguration](t, parse(t, given), websiteInput, websiteModel); got != given {
		t.Errorf("a site comes back as %s", got)
	}
}

func TestReceiversOfNotifications(t *testing.T) {
	given := `{"EventBridgeConfiguration":{"EventBridgeEnabled":true},"LambdaConfigurations":[{"Event":"s3:ObjectCreated:*","Filter":{"S3Key":{"Rules":[{"Name":"suffix","Value":".csv"}]}},"Function":"f"}],"TopicConfigurations":[{"Event":"s3:ObjectRemoved:*","Topic":"t"}]}`
	if got := through[types.NotificationConfiguration](t, parse(t, given), notificationInput, notificationModel); got != given {
		t.Errorf("notifications come back as %s", got)
	}
	live := parse(t, `{"QueueConfigurations":[{"Events":["a","b"],"QueueArn":"q","Filter":{"Key":{"FilterRules":[{"Name":"Prefix","Value":"x"}]}}}]}`)
	want := `{"QueueConfigurations":[{"Event":"a","Filter":{"S3Key":{"Rules":[{"Name":"prefix","Value":"x"}]}},"Queue":"q"},{"Event":"b","Filter":{"S3Key":{"Rules":[{"Name":"prefix","Value":"x"}]}},"Queue":"q"}]}`
	if got := written(t, notificationModel(live)); got != want {
		t.Errorf("two events of one receiver are %s", got)
	}
}

func TestAttributesOfABucket(t *testing.T) {
	for region, want := range map[string]string{
		"us-east-1":    "http://b.s3-website-us-east-1.amazonaws.com",
		"eu-central-1": "http://b.s3-website.eu-central-1.amazonaws.com",
		"cn-north-1":   "http://b.s3-website.cn-north-1.amazonaws.com.cn",
	} {
		if got := attributes("b", region)["WebsiteURL"]; got != want {
			t.Errorf("%s: %s", region, got)
		}
	}
	if got := attributes("b", "cn-north-1")["Arn"]; got != "arn:aws-cn:s3:::b" {
		t.Error(got)
	}
}
