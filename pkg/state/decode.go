package state

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
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
	var v any
	if err := unmarshal(data, &v); err != nil {
		return nil, notJSON("a resource record", err)
	}
	res := d.resource(v, true, "", "")
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

func (d *decoder) damage(logicalID, path, want string, got any, there bool) {
	found := "missing"
	if there {
		found = shapeOf(got)
	}
	d.report(logicalID, path, fmt.Sprintf("it must be %s, and is %s", want, found))
}

func (d *decoder) report(logicalID, path, detail string) {
	next := nextRestore
	if d.severity == diag.Warning {
		next = nextUnread
	}
	d.found = append(d.found, diag.Diagnostic{
		Severity: d.severity, Stack: d.stack, LogicalID: Printable(logicalID), Path: Printable(path),
		Summary: "the state record is damaged", Detail: detail, Next: next,
	})
}

func notJSON(what string, err error) error {
	return &DamagedError{Diagnostics: diag.Diagnostics{{
		Severity: diag.Error, Summary: what + " is not JSON", Detail: err.Error(), Next: nextRestore,
	}}}
}

func (d *decoder) record(data []byte) (*Record, error) {
	// The text is read once, into plain values: records reach megabytes.
	var v any
	if err := unmarshal(data, &v); err != nil {
		return nil, notJSON("the state record", err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, &DamagedError{Diagnostics: diag.Diagnostics{{
			Severity: diag.Error, Summary: "the state record is damaged",
			Detail: "it must be an object, and is " + shapeOf(v), Next: nextRestore,
		}}}
	}
	rec := &Record{}
	// The name comes first: everything below is reported under it.
	d.stack = Printable(asText(m["stackName"]))
	var err error
	if rec.Version, err = d.version(m); err != nil {
		return nil, err
	}
	rec.StackName = d.text(m, "stackName", false, "", "stackName")
	rec.Region = d.text(m, "region", false, "", "region")
	rec.ParentStack = d.text(m, "parentStack", false, "", "parentStack")
	rec.ParentLogicalID = d.text(m, "parentLogicalId", false, "", "parentLogicalId")
	rec.ParentRegion = d.text(m, "parentRegion", false, "", "parentRegion")
	rec.LastModified = milliseconds(m["lastModified"])
	rec.Resources = d.resources(m)
	rec.Outputs = orEmpty(d.object(m, "outputs", false, "", "outputs"))
	rec.Imports = list(d, m, "imports", "sourceStack, sourceRegion and exportName", func(get func(string) string) (Import, bool) {
		i := Import{get("sourceStack"), get("sourceRegion"), get("exportName")}
		return i, i.SourceStack != "" && i.ExportName != ""
	})
	rec.OutputReads = list(d, m, "outputReads", "sourceStack, sourceRegion and outputName", func(get func(string) string) (OutputRead, bool) {
		o := OutputRead{get("sourceStack"), get("sourceRegion"), get("outputName")}
		return o, o.SourceStack != "" && o.OutputName != ""
	})
	rec.Orphans = d.orphans(m)
	rec.Extra = d.extra(m, recordJSON{}, "", "")
	return rec, nil
}

// version reads the schema version; a missing one is that of the first layout.
func (d *decoder) version(m map[string]any) (int, error) {
	v, there := m["version"]
	if !there {
		return 1, nil
	}
	n, _ := v.(json.Number)
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil || f != float64(int(f)) || f < 1 || f > SchemaVersion {
		text, _ := compact(v)
		return 0, &VersionError{File: "state record", Stack: d.stack, Version: clip(string(text)), Known: SchemaVersion}
	}
	return int(f), nil
}

func asText(v any) string {
	s, _ := v.(string)
	return s
}

func (d *decoder) text(m map[string]any, name string, required bool, logicalID, path string) string {
	v, there := m[name]
	if !there && !required {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		d.damage(logicalID, path, "a string", v, there)
	}
	return s
}

func (d *decoder) object(m map[string]any, name string, required bool, logicalID, path string) map[string]any {
	v, there := m[name]
	if !there && !required {
		return nil
	}
	o, ok := v.(map[string]any)
	if !ok {
		d.damage(logicalID, path, "an object", v, there)
	}
	return o
}

// extra encodes the members that the struct known has no field for.
func (d *decoder) extra(m map[string]any, known any, logicalID, path string) map[string]json.RawMessage {
	var extra map[string]json.RawMessage
	names := fieldNames(known)
	for name, v := range m {
		if names[name] {
			continue
		}
		raw, err := compact(v)
		if err != nil {
			d.report(logicalID, path, err.Error())
			continue
		}
		if extra == nil {
			extra = map[string]json.RawMessage{}
		}
		extra[name] = raw
	}
	return extra
}

func (d *decoder) resources(m map[string]any) map[string]*Resource {
	out := map[string]*Resource{}
	v, there := m["resources"]
	all, ok := v.(map[string]any)
	if !ok {
		d.damage("", "resources", "a map of logical ids to resource records", v, there)
		return out
	}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if res := d.resource(all[id], true, id, "resources."+id); res != nil {
			out[id] = res
		}
	}
	return out
}

// resource reads one resource record. It returns nil for one that cannot be used at all.
func (d *decoder) resource(v any, there bool, logicalID, path string) *Resource {
	m, ok := v.(map[string]any)
	if !ok {
		d.damage(logicalID, path, "a resource record", v, there)
		return nil
	}
	at := func(member string) string {
		if path == "" {
			return member
		}
		return path + "." + member
	}
	text := func(name string, required bool) string { return d.text(m, name, required, logicalID, at(name)) }
	object := func(name string, required bool) map[string]any {
		return d.object(m, name, required, logicalID, at(name))
	}
	res := &Resource{
		ResourceType:        text("resourceType", true),
		PhysicalID:          text("physicalId", true),
		DeletionPolicy:      text("deletionPolicy", false),
		UpdateReplacePolicy: text("updateReplacePolicy", false),
		ProvisionedBy:       text("provisionedBy", false),
		Properties:          orEmpty(object("properties", true)),
		Attributes:          orEmpty(object("attributes", false)),
		ObservedProperties:  orNil(object("observedProperties", false)),
		Metadata:            orNil(object("metadata", false)),
		Dependencies:        d.strings(m, "dependencies", logicalID, at("dependencies")),
		Extra:               d.extra(m, resourceJSON{}, logicalID, path),
	}
	if m["resourceType"] == "" {
		d.report(logicalID, at("resourceType"), "it must name the resource's type, and is an empty string")
	}
	if res.ResourceType == "" {
		return nil
	}
	return res
}

func orNil(m map[string]any) map[string]any {
	if len(m) == 0 {
		return nil
	}
	return m
}

func (d *decoder) strings(m map[string]any, name, logicalID, path string) []string {
	v, there := m[name]
	if !there {
		return nil
	}
	items, ok := v.([]any)
	if !ok {
		d.damage(logicalID, path, "a list of logical ids", v, true)
		return nil
	}
	var out []string
	for i, item := range items {
		s, ok := item.(string)
		if !ok {
			d.damage(logicalID, fmt.Sprintf("%s.%d", path, i), "a logical id", item, true)
			continue
		}
		out = append(out, s)
	}
	return out
}

// list reads a list of objects whose members are all strings; read says whether one is complete.
func list[T any](d *decoder, m map[string]any, name, members string, read func(func(string) string) (T, bool)) []T {
	v, there := m[name]
	if !there {
		return nil
	}
	items, ok := v.([]any)
	if !ok {
		d.damage("", name, "a list", v, true)
		return nil
	}
	var out []T
	for i, item := range items {
		o, _ := item.(map[string]any)
		sound := o != nil
		t, complete := read(func(member string) string {
			s, isText := o[member].(string)
			_, there := o[member]
			sound = sound && (isText || !there)
			return s
		})
		if !sound || !complete {
			d.report("", fmt.Sprintf("%s.%d", name, i), "it must be an object with the strings "+members)
			continue
		}
		out = append(out, t)
	}
	return out
}

func (d *decoder) orphans(m map[string]any) []Orphan {
	v, there := m["orphans"]
	if !there {
		return nil
	}
	items, ok := v.([]any)
	if !ok {
		d.damage("", "orphans", "a list of orphan records", v, true)
		return nil
	}
	var out []Orphan
	first := map[string]Orphan{}
	for i, item := range items {
		path := fmt.Sprintf("orphans.%d", i)
		m, ok := item.(map[string]any)
		if !ok {
			d.damage("", path, "an orphan record", item, true)
			continue
		}
		id, there := m["logicalId"]
		o := Orphan{LogicalID: asText(id), OrphanedAt: milliseconds(m["orphanedAt"])}
		if o.LogicalID == "" {
			d.damage("", path+".logicalId", "a logical id", id, there)
			continue
		}
		state, there := m["state"]
		if o.Resource = d.resource(state, there, o.LogicalID, path+".state"); o.Resource == nil {
			continue
		}
		o.Extra = d.extra(m, orphanJSON{}, o.LogicalID, path)
		if j, twice := first[o.LogicalID]; twice {
			d.report(o.LogicalID, path, fmt.Sprintf(
				"%s and %s have the same logicalId, and only one of the two could be adopted: delete the record of the other one",
				Printable(j.Resource.PhysicalID), Printable(o.Resource.PhysicalID)))
			continue
		}
		first[o.LogicalID] = o
		out = append(out, o)
	}
	return out
}

// milliseconds reads a timestamp. A record is not refused over one: it decides nothing.
func milliseconds(v any) int64 {
	n, _ := v.(json.Number)
	return integer(json.RawMessage(n))
}
