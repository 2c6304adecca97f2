package state

import (
	"encoding/json"
	"fmt"
	"sort"
	"strconv"

	"github.com/slipway-cdk/slipway/pkg/diag"
)

// Decode reads state.json. It accepts versions 1 to SchemaVersion and a missing version, and returns a
// *VersionError for any other. A record whose members do not have the shape that the format gives them is
// refused with a *DamagedError that names every such member: read as empty, it would make a deploy create
// what already stands, or replace it.
func Decode(data []byte) (*Record, error) {
	d := decoder{severity: diag.Error}
	rec, err := d.record(data)
	if err != nil {
		return nil, err
	}
	if d.found.HasErrors() {
		return nil, &DamagedError{Diagnostics: d.found}
	}
	return rec, nil
}

// Check returns what Decode would refuse the record for, or nil.
func Check(data []byte) error {
	_, err := Decode(data)
	return err
}

// DecodeLenient reads a damaged record for a command that changes nothing, such as diff: what has the wrong
// shape is read as empty or left out, with a warning each. What it returns must never be saved or deployed
// against. Text that is not JSON and an unsupported version remain errors.
func DecodeLenient(data []byte) (*Record, diag.Diagnostics, error) {
	d := decoder{severity: diag.Warning}
	rec, err := d.record(data)
	if err != nil {
		return nil, nil, err
	}
	return rec, d.found, nil
}

// DecodeResource reads one resource record, refusing a damaged one as Decode does.
func DecodeResource(data []byte) (*Resource, error) {
	d := decoder{severity: diag.Error}
	res := d.resource(data, "", "")
	if d.found.HasErrors() {
		return nil, &DamagedError{Diagnostics: d.found}
	}
	return res, nil
}

// UnmarshalJSON implements json.Unmarshaler with the checks of Decode.
func (r *Record) UnmarshalJSON(data []byte) error {
	rec, err := Decode(data)
	if err != nil {
		return err
	}
	*r = *rec
	return nil
}

// UnmarshalJSON implements json.Unmarshaler with the checks of Decode.
func (r *Resource) UnmarshalJSON(data []byte) error {
	res, err := DecodeResource(data)
	if err != nil {
		return err
	}
	*r = *res
	return nil
}

// decoder collects what is wrong with a record; severity decides whether that refuses it.
type decoder struct {
	severity diag.Severity
	stack    string
	found    diag.Diagnostics
}

// Next steps that the diagnostics give.
const (
	nextRestore = "Nothing was changed. Restore the last good version of the stack's state.json from the bucket's version history, or correct this member by hand, then run the command again."
	nextUnread  = "This is a preview only: deploy and destroy refuse this record until it is repaired."
)

func (d *decoder) damage(logicalID, path, want string, got json.RawMessage) {
	found := shape(got)
	if got == nil {
		found = "missing"
	}
	d.report(logicalID, path, fmt.Sprintf("it must be %s, and is %s", want, found))
}

func (d *decoder) report(logicalID, path, detail string) {
	next := nextRestore
	if d.severity == diag.Warning {
		next = nextUnread
	}
	d.found = append(d.found, diag.Diagnostic{
		Severity: d.severity, Stack: d.stack, LogicalID: logicalID, Path: path,
		Summary: "the state record is damaged", Detail: detail, Next: next,
	})
}

func (d *decoder) record(data []byte) (*Record, error) {
	var raw json.RawMessage
	if err := unmarshal(data, &raw); err != nil {
		return nil, &DamagedError{Diagnostics: diag.Diagnostics{{
			Severity: diag.Error, Summary: "the state record is not JSON", Detail: err.Error(), Next: nextRestore,
		}}}
	}
	m, err := asObject(raw)
	if err != nil {
		return nil, &DamagedError{Diagnostics: diag.Diagnostics{{
			Severity: diag.Error, Summary: "the state record is damaged", Detail: err.Error(), Next: nextRestore,
		}}}
	}
	rec := &Record{}
	// The name comes first: everything below is reported under it.
	rec.StackName = d.text(m, "stackName")
	d.stack = Printable(rec.StackName)
	if rec.Version, err = version(m["version"]); err != nil {
		err.(*VersionError).Stack = d.stack
		return nil, err
	}
	rec.Region = d.text(m, "region")
	rec.ParentStack = d.text(m, "parentStack")
	rec.ParentLogicalID = d.text(m, "parentLogicalId")
	rec.ParentRegion = d.text(m, "parentRegion")
	rec.LastModified = integer(m["lastModified"])
	rec.Resources = d.resources(m["resources"])
	rec.Outputs = map[string]any{}
	if v, ok := m["outputs"]; ok {
		if o := d.object(v, "", "outputs"); o != nil {
			rec.Outputs = o
		}
	}
	if v, ok := m["imports"]; ok {
		list(d, v, "imports", "sourceStack, sourceRegion and exportName", func(i Import) bool {
			return i.SourceStack != "" && i.ExportName != ""
		}, &rec.Imports)
	}
	if v, ok := m["outputReads"]; ok {
		list(d, v, "outputReads", "sourceStack, sourceRegion and outputName", func(o OutputRead) bool {
			return o.SourceStack != "" && o.OutputName != ""
		}, &rec.OutputReads)
	}
	if v, ok := m["orphans"]; ok {
		rec.Orphans = d.orphans(v)
	}
	rec.Extra = without(m, fieldNames(recordJSON{}))
	return rec, nil
}

// version reads the schema version; a missing one is that of the first layout.
func version(raw json.RawMessage) (int, error) {
	if raw == nil {
		return 1, nil
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != float64(int(f)) || f < 1 || f > SchemaVersion {
		return 0, &VersionError{File: "state record", Version: clip(string(raw)), Known: SchemaVersion}
	}
	return int(f), nil
}

func (d *decoder) text(m map[string]json.RawMessage, name string) string {
	raw, ok := m[name]
	if !ok {
		return ""
	}
	var s string
	if !is(raw, "a string") || json.Unmarshal(raw, &s) != nil {
		d.damage("", name, "a string", raw)
	}
	return s
}

func (d *decoder) object(raw json.RawMessage, logicalID, path string) map[string]any {
	if !is(raw, "an object") {
		d.damage(logicalID, path, "an object", raw)
		return nil
	}
	var m map[string]any
	if err := unmarshal(raw, &m); err != nil {
		d.report(logicalID, path, err.Error())
		return nil
	}
	return m
}

func (d *decoder) resources(raw json.RawMessage) map[string]*Resource {
	out := map[string]*Resource{}
	if !is(raw, "an object") {
		d.damage("", "resources", "a map of logical ids to resource records", raw)
		return out
	}
	var m map[string]json.RawMessage
	if err := unmarshal(raw, &m); err != nil {
		d.report("", "resources", err.Error())
		return out
	}
	ids := make([]string, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	for _, id := range ids {
		if res := d.resource(m[id], id, "resources."+id); res != nil {
			out[id] = res
		}
	}
	return out
}

// resource reads one resource record. It returns nil for one that cannot be used at all.
func (d *decoder) resource(raw json.RawMessage, logicalID, path string) *Resource {
	logicalID, path = Printable(logicalID), Printable(path)
	at := func(member string) string {
		if path == "" {
			return member
		}
		return path + "." + member
	}
	if !is(raw, "an object") {
		d.damage(logicalID, path, "a resource record", raw)
		return nil
	}
	var m map[string]json.RawMessage
	if err := unmarshal(raw, &m); err != nil {
		d.report(logicalID, path, err.Error())
		return nil
	}
	text := func(name string, required bool) string {
		v, ok := m[name]
		if !ok && !required {
			return ""
		}
		var s string
		if !is(v, "a string") || json.Unmarshal(v, &s) != nil {
			d.damage(logicalID, at(name), "a string", v)
		}
		return s
	}
	res := &Resource{
		ResourceType:        text("resourceType", true),
		PhysicalID:          text("physicalId", true),
		DeletionPolicy:      text("deletionPolicy", false),
		UpdateReplacePolicy: text("updateReplacePolicy", false),
		ProvisionedBy:       text("provisionedBy", false),
		Properties:          map[string]any{},
		Attributes:          map[string]any{},
	}
	if is(m["resourceType"], "a string") && res.ResourceType == "" {
		d.report(logicalID, at("resourceType"), "it must name the resource's type, and is an empty string")
	}
	if o := d.object(m["properties"], logicalID, at("properties")); o != nil {
		res.Properties = o
	}
	if v, ok := m["attributes"]; ok {
		if o := d.object(v, logicalID, at("attributes")); o != nil {
			res.Attributes = o
		}
	}
	if v, ok := m["observedProperties"]; ok {
		if res.ObservedProperties = d.object(v, logicalID, at("observedProperties")); len(res.ObservedProperties) == 0 {
			res.ObservedProperties = nil
		}
	}
	if v, ok := m["metadata"]; ok {
		if res.Metadata = d.object(v, logicalID, at("metadata")); len(res.Metadata) == 0 {
			res.Metadata = nil
		}
	}
	if v, ok := m["dependencies"]; ok {
		res.Dependencies = d.strings(v, logicalID, at("dependencies"))
	}
	res.Extra = without(m, fieldNames(resourceJSON{}))
	if res.ResourceType == "" {
		return nil
	}
	return res
}

func (d *decoder) strings(raw json.RawMessage, logicalID, path string) []string {
	var items []json.RawMessage
	if !is(raw, "a list") || unmarshal(raw, &items) != nil {
		d.damage(logicalID, path, "a list of logical ids", raw)
		return nil
	}
	var out []string
	for i, item := range items {
		var s string
		if !is(item, "a string") || json.Unmarshal(item, &s) != nil {
			d.damage(logicalID, fmt.Sprintf("%s.%d", path, i), "a logical id", item)
			continue
		}
		out = append(out, s)
	}
	return out
}

// list reads a list of records that are all strings; ok says whether one is complete.
func list[T any](d *decoder, raw json.RawMessage, path, members string, ok func(T) bool, into *[]T) {
	var items []json.RawMessage
	if !is(raw, "a list") || unmarshal(raw, &items) != nil {
		d.damage("", path, "a list", raw)
		return
	}
	for i, item := range items {
		var t T
		if !is(item, "an object") || json.Unmarshal(item, &t) != nil || !ok(t) {
			d.report("", fmt.Sprintf("%s.%d", path, i), "it must be an object with the strings "+members)
			continue
		}
		*into = append(*into, t)
	}
}

func (d *decoder) orphans(raw json.RawMessage) []Orphan {
	var items []json.RawMessage
	if !is(raw, "a list") || unmarshal(raw, &items) != nil {
		d.damage("", "orphans", "a list of orphan records", raw)
		return nil
	}
	var out []Orphan
	first := map[string]int{}
	for i, item := range items {
		path := fmt.Sprintf("orphans.%d", i)
		m, err := asObject(item)
		if err != nil {
			d.damage("", path, "an orphan record", item)
			continue
		}
		var o Orphan
		if raw := m["logicalId"]; !is(raw, "a string") || json.Unmarshal(raw, &o.LogicalID) != nil || o.LogicalID == "" {
			d.damage("", path+".logicalId", "a logical id", raw)
			continue
		}
		o.OrphanedAt = integer(m["orphanedAt"])
		if o.Resource = d.resource(m["state"], o.LogicalID, path+".state"); o.Resource == nil {
			continue
		}
		o.Extra = without(m, fieldNames(orphanJSON{}))
		if j, twice := first[o.LogicalID]; twice {
			d.report(Printable(o.LogicalID), path, fmt.Sprintf("orphans.%d has the same logicalId: only one of the two could be adopted", j))
			continue
		}
		first[o.LogicalID] = i
		out = append(out, o)
	}
	return out
}

// integer reads a timestamp. A record is not refused over one: it decides nothing.
func integer(raw json.RawMessage) int64 {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f < -1<<53 || f > 1<<53 {
		return 0
	}
	return int64(f)
}
