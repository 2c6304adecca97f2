package s3bucket

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// objects are the items of a list.
func objects(v any) []map[string]any {
	var out []map[string]any
	list, _ := v.([]any)
	for _, e := range list {
		if m, ok := e.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// object is a member that is an object, or an empty one.
func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// plain is an SDK value as JSON has it, by the SDK's names, without what is not set.
func plain(v any) map[string]any {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var out map[string]any
	if d.Decode(&out) != nil {
		return nil
	}
	return set(out).(map[string]any)
}

// set is a value without what is null or "": the SDK's for what is not set.
func set(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			if e != nil && e != "" {
				out[k] = set(e)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = set(e)
		}
		return out
	}
	return v
}

// move takes fields out of an object under other names.
func move(from, to map[string]any, names map[string]string) {
	for name, other := range names {
		if v := from[name]; v != nil {
			to[other] = v
		}
	}
}

func reversed(names map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range names {
		out[v] = k
	}
	return out
}

// What rules have that the API keeps elsewhere or calls otherwise.
var (
	expiration     = map[string]string{"ExpirationDate": "Date", "ExpirationInDays": "Days", "ExpiredObjectDeleteMarker": "ExpiredObjectDeleteMarker"}
	transition     = map[string]string{"StorageClass": "StorageClass", "TransitionDate": "Date", "TransitionInDays": "Days"}
	lateTransition = map[string]string{"StorageClass": "StorageClass", "TransitionInDays": "NoncurrentDays", "NewerNoncurrentVersions": "NewerNoncurrentVersions"}
	conditions     = map[string]string{"Prefix": "Prefix", "ObjectSizeGreaterThan": "ObjectSizeGreaterThan", "ObjectSizeLessThan": "ObjectSizeLessThan"}
	sameInRules    = map[string]string{"Id": "ID", "Status": "Status", "AbortIncompleteMultipartUpload": "AbortIncompleteMultipartUpload", "NoncurrentVersionExpiration": "NoncurrentVersionExpiration"}
)

// ruleInput is a rule of a lifecycle as the API has it.
func ruleInput(r map[string]any) map[string]any {
	out := map[string]any{"Filter": filterInput(r)}
	move(r, out, sameInRules)
	ends := map[string]any{}
	if move(r, ends, expiration); len(ends) > 0 {
		out["Expiration"] = ends
	}
	if days := r["NoncurrentVersionExpirationInDays"]; days != nil && out["NoncurrentVersionExpiration"] == nil {
		out["NoncurrentVersionExpiration"] = map[string]any{"NoncurrentDays": days}
	}
	if list := transitions(r, "Transitions", "Transition", transition); len(list) > 0 {
		out["Transitions"] = list
	}
	if list := transitions(r, "NoncurrentVersionTransitions", "NoncurrentVersionTransition", lateTransition); len(list) > 0 {
		out["NoncurrentVersionTransitions"] = list
	}
	return out
}

// transitions are those of the list and the single one that templates may give beside it.
func transitions(r map[string]any, many, one string, names map[string]string) []any {
	given := objects(r[many])
	if single, ok := r[one].(map[string]any); ok {
		given = append(given, single)
	}
	var out []any
	for _, t := range given {
		n := map[string]any{}
		move(t, n, names)
		if n["StorageClass"] == "Glacier" { // as CloudFormation allows it to be written
			n["StorageClass"] = "GLACIER"
		}
		out = append(out, n)
	}
	return out
}

// filterInput is what objects a rule is for: one condition, or several under And; all objects have an empty prefix.
func filterInput(r map[string]any) map[string]any {
	given := map[string]any{}
	move(r, given, conditions)
	tags, _ := r["TagFilters"].([]any)
	switch {
	case len(given)+len(tags) == 0:
		return map[string]any{"Prefix": ""}
	case len(given)+len(tags) > 1:
		if len(tags) > 0 {
			given["Tags"] = tags
		}
		return map[string]any{"And": given}
	case len(tags) == 1:
		return map[string]any{"Tag": tags[0]}
	}
	return given
}

// ruleModel is a rule of the API, by the SDK's names, as templates have it.
func ruleModel(r map[string]any) map[string]any {
	out := map[string]any{}
	move(r, out, reversed(sameInRules))
	if ends, ok := r["Expiration"].(map[string]any); ok {
		move(ends, out, reversed(expiration))
	}
	filter, _ := r["Filter"].(map[string]any)
	if and, ok := filter["And"].(map[string]any); ok {
		filter = and
	}
	move(filter, out, reversed(conditions))
	if tag, ok := filter["Tag"]; ok {
		out["TagFilters"] = []any{tag}
	}
	if tags, ok := filter["Tags"]; ok {
		out["TagFilters"] = tags
	}
	if prefix := r["Prefix"]; prefix != nil {
		out["Prefix"] = prefix
	}
	for many, names := range map[string]map[string]string{"Transitions": transition, "NoncurrentVersionTransitions": lateTransition} {
		var list []any
		for _, t := range objects(r[many]) {
			n := map[string]any{}
			move(t, n, reversed(names))
			list = append(list, n)
		}
		if len(list) > 0 {
			out[many] = list
		}
	}
	return out
}

func websiteInput(site map[string]any) map[string]any {
	out := maps.Clone(site)
	if out["IndexDocument"] != nil {
		out["IndexDocument"] = map[string]any{"Suffix": out["IndexDocument"]}
	}
	if out["ErrorDocument"] != nil {
		out["ErrorDocument"] = map[string]any{"Key": out["ErrorDocument"]}
	}
	return out
}

func websiteModel(site map[string]any) map[string]any {
	if index, ok := site["IndexDocument"].(map[string]any); ok {
		site["IndexDocument"] = index["Suffix"]
	}
	if page, ok := site["ErrorDocument"].(map[string]any); ok {
		site["ErrorDocument"] = page["Key"]
	}
	return site
}

// notified are the kinds of receivers: CloudFormation's list and its field of the receiver, the API's list and field.
var notified = []struct{ list, field, theirList, theirField string }{
	{"LambdaConfigurations", "Function", "LambdaFunctionConfigurations", "LambdaFunctionArn"},
	{"QueueConfigurations", "Queue", "QueueConfigurations", "QueueArn"},
	{"TopicConfigurations", "Topic", "TopicConfigurations", "TopicArn"},
}

func notificationInput(given map[string]any) map[string]any {
	out := map[string]any{}
	if bridge, ok := given["EventBridgeConfiguration"].(map[string]any); ok && direct.Text(bridge["EventBridgeEnabled"]) != "false" {
		out["EventBridgeConfiguration"] = map[string]any{}
	}
	for _, k := range notified {
		var list []any
		for _, n := range objects(given[k.list]) {
			to := map[string]any{"Events": []any{n["Event"]}, k.theirField: n[k.field]}
			if filter, ok := n["Filter"].(map[string]any); ok {
				key, _ := filter["S3Key"].(map[string]any)
				to["Filter"] = map[string]any{"Key": map[string]any{"FilterRules": key["Rules"]}}
			}
			list = append(list, to)
		}
		if len(list) > 0 {
			out[k.theirList] = list
		}
	}
	return out
}

// notificationModel has an item for each event of what the API returns.
func notificationModel(live map[string]any) map[string]any {
	out := map[string]any{}
	if live["EventBridgeConfiguration"] != nil {
		out["EventBridgeConfiguration"] = map[string]any{"EventBridgeEnabled": true}
	}
	for _, k := range notified {
		var list []any
		for _, n := range objects(live[k.theirList]) {
			events, _ := n["Events"].([]any)
			for _, event := range events {
				item := map[string]any{"Event": event, k.field: n[k.theirField]}
				if filter, ok := n["Filter"].(map[string]any); ok {
					if key, ok := filter["Key"].(map[string]any); ok {
						item["Filter"] = map[string]any{"S3Key": map[string]any{"Rules": filterRules(key["FilterRules"])}}
					}
				}
				list = append(list, item)
			}
		}
		if len(list) > 0 {
			out[k.list] = list
		}
	}
	return out
}

// filterRules have their names in lower case, as templates write them and the API does not return them.
func filterRules(v any) []any {
	var out []any
	for _, r := range objects(v) {
		out = append(out, map[string]any{"Name": strings.ToLower(direct.Text(r["Name"])), "Value": direct.Text(r["Value"])})
	}
	return out
}

// What inventories have that the API keeps elsewhere or calls otherwise.
var (
	sameInInventories = map[string]string{"Id": "Id", "Enabled": "IsEnabled", "IncludedObjectVersions": "IncludedObjectVersions", "OptionalFields": "OptionalFields"}
	inventoryTarget   = map[string]string{"BucketAccountId": "AccountId", "BucketArn": "Bucket", "Format": "Format", "Prefix": "Prefix"}
)

func inventoryInput(given map[string]any) map[string]any {
	target := map[string]any{}
	destination, _ := given["Destination"].(map[string]any)
	move(destination, target, inventoryTarget)
	out := map[string]any{
		"Destination": map[string]any{"S3BucketDestination": target},
		"Schedule":    map[string]any{"Frequency": given["ScheduleFrequency"]},
	}
	if move(given, out, sameInInventories); given["Prefix"] != nil {
		out["Filter"] = map[string]any{"Prefix": given["Prefix"]}
	}
	return out
}

func inventoryModel(live map[string]any) map[string]any {
	out := map[string]any{}
	move(live, out, reversed(sameInInventories))
	if destination, ok := live["Destination"].(map[string]any); ok {
		target, _ := destination["S3BucketDestination"].(map[string]any)
		to := map[string]any{}
		move(target, to, reversed(inventoryTarget))
		out["Destination"] = to
	}
	if schedule, ok := live["Schedule"].(map[string]any); ok {
		out["ScheduleFrequency"] = schedule["Frequency"]
	}
	if filter, ok := live["Filter"].(map[string]any); ok && filter["Prefix"] != nil {
		out["Prefix"] = filter["Prefix"]
	}
	return out
}
