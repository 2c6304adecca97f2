package diff

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/schema"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// StatefulReplacements are the replacements that lose data: those of a resource that holds some and does not
// stay behind (UpdateReplacePolicy Retain). They need the caller's consent.
func StatefulReplacements(changes []Change) []Change {
	var out []Change
	for _, c := range changes {
		if c.Action == ActionReplace && c.Stateful && !c.Retain {
			out = append(out, c)
		}
	}
	return out
}

// stateful reports whether deleting a deployed resource loses data: what the schema says, and the types that
// the reference adds (§6.6). A log group that keeps nothing for a set time counts as disposable there.
func stateful(t *schema.Type, typ string, properties map[string]any) bool {
	switch typ {
	case "AWS::Logs::LogGroup":
		days, ok := text(properties["RetentionInDays"])
		return ok && days != "0"
	case "AWS::RDS::DBInstance", "AWS::RDS::DBCluster", "AWS::DocDB::DBInstance", "AWS::DocDB::DBCluster",
		"AWS::Neptune::DBInstance", "AWS::Neptune::DBCluster", "AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable",
		"AWS::EFS::FileSystem", "AWS::FSx::FileSystem", "AWS::S3::Bucket", "AWS::ECR::Repository", "AWS::EC2::Volume",
		"AWS::Kinesis::Stream", "AWS::Elasticsearch::Domain", "AWS::OpenSearchService::Domain", "AWS::Cognito::UserPool",
		"AWS::SecretsManager::Secret", "AWS::SSM::Parameter", "AWS::Glue::Database", "AWS::Glue::Table", "AWS::CloudFront::Distribution":
		return true
	}
	return t != nil && t.Stateful
}

// replacement completes the verdict on a resource that is replaced: what becomes of its old half, and whether
// the two halves can stand side by side.
func (d *differ) replacement(c *Change, was *state.Resource) {
	oldType := d.in.lookup(was.ResourceType)
	c.Stateful = stateful(oldType, was.ResourceType, was.Properties)
	c.Retain = c.UpdateReplacePolicy == "Retain"
	if c.OldType != "" {
		return
	}
	c.DeleteFirst = oldType != nil && oldType.DeleteBeforeCreate
	if c.DeleteFirst {
		return
	}
	name := collision(oldType, was.Properties, d.result.Desired[c.LogicalID])
	switch {
	case name == "":
	case d.in.DeleteFirst && !c.Retain:
		c.DeleteFirst = true
	default:
		next := fmt.Sprintf("Change %s or remove it, so that the two can stand side by side, or allow the old one to be deleted first with --replace.", name)
		if c.Retain {
			next = fmt.Sprintf("Change %s or remove it: UpdateReplacePolicy Retain keeps the old one and its name.", name)
		}
		d.diags = append(d.diags, diag.Diagnostic{
			Severity: diag.Error, LogicalID: c.LogicalID, Path: "Properties." + name,
			Summary: fmt.Sprintf("%s has to be replaced but keeps its fixed name", c.LogicalID),
			Detail: fmt.Sprintf("%s can't be changed in place, and a new %s can't be created while the old one has the same %s",
				strings.Join(forcing(c.Changes), ", "), c.Type, name),
			Next: next,
		})
	}
}

// forcing lists the properties that make a change a replacement.
func forcing(changes []PropertyChange) []string {
	var out []string
	for _, c := range changes {
		if c.Replacement == schema.ReplaceAlways {
			out = append(out, c.Path)
		}
	}
	return out
}

// renames refuses a new resource that takes the fixed name of one of the same type that leaves the template:
// most likely its logical id has changed. The new one is created first, and AWS would refuse it.
func (d *differ) renames() diag.Diagnostics {
	leaving := map[string][]string{} // by type and fixed name
	keys := map[string][]string{}
	identityOf := func(typ string) []string {
		key, known := keys[typ]
		if !known {
			key = identity(d.in.lookup(typ))
			keys[typ] = key
		}
		return key
	}
	for _, c := range d.result.Changes {
		if c.Action != ActionDelete {
			continue
		}
		if name := fixedName(identityOf(c.Type), d.in.Record.Resources[c.LogicalID].Properties); name != "" {
			leaving[c.Type+name] = append(leaving[c.Type+name], c.LogicalID)
		}
	}
	if len(leaving) == 0 {
		return nil
	}
	var diags diag.Diagnostics
	for _, c := range d.result.Changes {
		if c.Action != ActionCreate {
			continue
		}
		key := identityOf(c.Type)
		for _, old := range leaving[c.Type+fixedName(key, d.result.Desired[c.LogicalID])] {
			diags = append(diags, diag.Diagnostic{
				Severity: diag.Error, LogicalID: c.LogicalID, Path: "Properties." + key[0],
				Summary: fmt.Sprintf("%s takes the name of %s, which leaves the template", c.LogicalID, old),
				Detail:  fmt.Sprintf("a new %s can't be created while the old one has the same %s", c.Type, key[0]),
				Next:    fmt.Sprintf("Keep the logical ID %s, change %s, or remove the old one in a deploy of its own first.", old, key[0]),
			})
		}
	}
	return diags
}

// collision names the property through which two resources with these properties would be one and the same
// to AWS, "" when they can coexist as far as is known.
func collision(t *schema.Type, old, desired map[string]any) string {
	key := identity(t)
	if name := fixedName(key, desired); name == "" || name != fixedName(key, old) {
		return ""
	}
	return key[0]
}

// fixedName is what properties identify a resource by, as text that is equal only for equal names; "" when AWS chooses
// the name, or it is not known yet.
func fixedName(key []string, properties map[string]any) string {
	if len(key) == 0 || properties[key[0]] == nil {
		return ""
	}
	var name strings.Builder
	for _, property := range key {
		value := properties[property]
		part, known := text(value)
		if value != nil && !known {
			return ""
		}
		fmt.Fprintf(&name, "\x00%t%s", value != nil, part)
	}
	return name.String()
}

// identity lists the settable properties that together identify a resource to its service, the name in front:
//
//   - the primary identifier, if every part of it can be set;
//   - else a create-only property that names the resource ("Name", "QueueName" of a Queue) together with what
//     else places it: other parts of the identifier or the ARN, and create-only names of what it is in.
//
// It is empty for what can be there twice: a task definition's family, a layer's name.
func identity(t *schema.Type) []string {
	if t == nil {
		return nil
	}
	if t.Name == "AWS::EC2::SecurityGroup" {
		// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateSecurityGroup.html
		return []string{"GroupName", "VpcId"}
	}
	settable := func(path string) bool { return t.Properties[path] != nil && !t.IsReadOnly([]string{path}) }
	var key []string
	whole := len(t.PrimaryIdentifier) > 0
	for _, path := range t.PrimaryIdentifier {
		if settable(path) {
			key = append(key, path)
		} else {
			whole = false
		}
	}
	if whole {
		slices.SortStableFunc(key, func(a, b string) int { return nameRank(a) - nameRank(b) })
		return key
	}
	name := nameProperty(t)
	if name == "" {
		return nil
	}
	fields := arnFields(t.ARN)
	for _, property := range slices.Sorted(maps.Keys(t.Properties)) {
		inARN := slices.Contains(fields, property) || slices.Contains(fields, property+"Name") || slices.Contains(fields, property+"Id")
		places := strings.HasSuffix(property, "Name") && t.Replacement([]string{property}) == schema.ReplaceAlways
		if (inARN || places) && !slices.Contains(key, property) {
			key = append(key, property)
		}
	}
	key = slices.DeleteFunc(key, func(property string) bool { return property == name })
	return append([]string{name}, key...)
}

// nameProperty is the create-only property by which the service tells resources of the type apart.
func nameProperty(t *schema.Type) string {
	short := t.Name[strings.LastIndex(t.Name, ":")+1:]
	fields := arnFields(t.ARN)
	for _, name := range []string{short + "Name", "Name"} {
		if t.Properties[name] == nil || t.Replacement([]string{name}) != schema.ReplaceAlways {
			continue
		}
		if slices.Contains(fields, name) || slices.Contains(fields, short+"Name") || identifies(t, name, short+"Name", "Name") {
			return name
		}
	}
	return ""
}

// nameRank puts what names a resource before what places it.
func nameRank(property string) int {
	if strings.HasSuffix(property, "Name") {
		return 0
	}
	return 1
}

func identifies(t *schema.Type, names ...string) bool {
	for _, id := range t.AdditionalIdentifiers {
		if len(id) == 1 && slices.Contains(names, id[0]) {
			return true
		}
	}
	return slices.ContainsFunc(names, func(name string) bool { return t.Attributes[name] != nil })
}

// arnFields lists the placeholders of an ARN template.
func arnFields(arn string) []string {
	var out []string
	for {
		_, rest, found := strings.Cut(arn, "${")
		if !found {
			return out
		}
		field, after, closed := strings.Cut(rest, "}")
		if !closed {
			return out
		}
		out = append(out, field)
		arn = after
	}
}

// Stateful reports whether deleting a recorded resource loses data (reference §6.6).
func Stateful(r *state.Resource) bool {
	t, _ := schema.Lookup(r.ResourceType)
	return stateful(t, r.ResourceType, r.Properties)
}

// Coexist reports whether two recorded resources of one logical id can stand side by side: their type allows it
// and they don't claim the same fixed name.
func Coexist(a, b *state.Resource) bool {
	if a.ResourceType != b.ResourceType {
		return true
	}
	t, _ := schema.Lookup(a.ResourceType)
	return t == nil || !t.DeleteBeforeCreate && collision(t, a.Properties, b.Properties) == ""
}
