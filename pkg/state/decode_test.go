package state

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/slipway-cdk/slipway/pkg/diag"
)

var updateGolden = flag.Bool("update", false, "rewrite the golden files")

func full() *Record {
	return &Record{
		Version: 8, StackName: "App~Kid", Region: "eu-west-1",
		Resources: map[string]*Resource{
			"Topic": {
				PhysicalID: "arn:aws:sns:eu-west-1:111111111111:t", ResourceType: "AWS::SNS::Topic",
				Properties: map[string]any{"DisplayName": "é <&> \"v2\"\n", "N": json.Number("1.50"), "Z": nil, "L": []any{}, "M": map[string]any{}},
			},
			"Queue": {
				PhysicalID: "q", ResourceType: "AWS::SQS::Queue", Properties: map[string]any{"VisibilityTimeout": json.Number("60")},
				Attributes:   map[string]any{"Arn": "a", "Endpoint": map[string]any{"Port": json.Number("3306")}},
				Dependencies: []string{"Topic", "Alarm"}, DeletionPolicy: "Retain", UpdateReplacePolicy: "Snapshot",
				ProvisionedBy: "cc-api", ObservedProperties: map[string]any{"FifoQueue": false},
				Metadata: map[string]any{"k": true}, Extra: map[string]json.RawMessage{"observedBaselineRefused": []byte("true")},
			},
		},
		Outputs:     map[string]any{"Num": json.Number("30"), "Name": "n"},
		Imports:     []Import{{SourceStack: "Net", SourceRegion: "eu-west-1", ExportName: "Net:Vpc"}},
		OutputReads: []OutputRead{{SourceStack: "Db", SourceRegion: "us-east-1", OutputName: "Host"}},
		ParentStack: "App", ParentLogicalID: "Kid", ParentRegion: "eu-west-1",
		Orphans: []Orphan{{LogicalID: "Bucket", OrphanedAt: 1795987904000, Resource: &Resource{
			PhysicalID: "b", ResourceType: "AWS::S3::Bucket", Properties: map[string]any{},
		}}},
		LastModified: 1795987904424,
		Extra:        map[string]json.RawMessage{"skippedOutputs": []byte(`{"a":  "<b>"}`)},
	}
}

func TestEncodeWritesWhatCdkdWrites(t *testing.T) {
	got, err := full().Encode()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "full-state.json")
	if *updateGolden {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
	rec, err := Decode(got)
	if err != nil {
		t.Fatal(err)
	}
	again, err := rec.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(again)); d != "" {
		t.Fatalf("second time (-want +got):\n%s", d)
	}
}

func TestEmptyMembersAreWrittenOrLeftOutAsCdkdDoes(t *testing.T) {
	got, err := (&Record{
		Version: 8, StackName: "A", Region: "eu-west-1", Imports: []Import{}, OutputReads: []OutputRead{}, Orphans: []Orphan{},
		Resources: map[string]*Resource{"R": {
			PhysicalID: "p", ResourceType: "T", Dependencies: []string{}, ObservedProperties: map[string]any{}, Metadata: map[string]any{},
		}},
	}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "version": 8,
  "region": "eu-west-1",
  "stackName": "A",
  "resources": {
    "R": {
      "physicalId": "p",
      "resourceType": "T",
      "properties": {},
      "attributes": {}
    }
  },
  "outputs": {},
  "lastModified": 0
}`
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
}

func TestEncodeRefusesAResourceWithoutRecord(t *testing.T) {
	for _, rec := range []*Record{
		{Resources: map[string]*Resource{"R": nil}},
		{Orphans: []Orphan{{LogicalID: "O"}}},
	} {
		if data, err := rec.Encode(); err == nil {
			t.Errorf("encoded as %s", data)
		}
	}
}

const okResource = `{"physicalId":"p","resourceType":"T","properties":{}}`

// stateWith is a sound record with some members replaced.
func stateWith(members ...string) string {
	m := map[string]string{
		"version": "8", "stackName": `"App"`, "region": `"eu-west-1"`, "resources": `{"R":` + okResource + `}`, "outputs": "{}",
	}
	for i := 0; i < len(members); i += 2 {
		m[members[i]] = members[i+1]
	}
	var parts []string
	for k, v := range m {
		if v != "" {
			parts = append(parts, `"`+k+`":`+v)
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func resourceWith(members ...string) string {
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(okResource), &m); err != nil {
		panic(err)
	}
	for i := 0; i < len(members); i += 2 {
		delete(m, members[i])
		if members[i+1] != "" {
			m[members[i]] = json.RawMessage(members[i+1])
		}
	}
	data, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return stateWith("resources", `{"R":`+string(data)+`}`)
}

func TestADamagedRecordIsRefused(t *testing.T) {
	orphan := func(id, state string) string { return `{"logicalId":` + id + `,"orphanedAt":1,"state":` + state + `}` }
	for _, c := range []struct {
		name, data, path, logicalID, detail string
	}{
		{"resources is a list", stateWith("resources", `[]`), "resources", "", "a list"},
		{"resources is a number", stateWith("resources", `7`), "resources", "", "a number"},
		{"resources is a boolean", stateWith("resources", `true`), "resources", "", "a boolean"},
		{"resources is a string", stateWith("resources", `"Queue"`), "resources", "", "a string"},
		{"resources is null", stateWith("resources", `null`), "resources", "", "null"},
		{"resources is missing", stateWith("resources", ``), "resources", "", "missing"},
		{"a resource is null", stateWith("resources", `{"R":null}`), "resources.R", "R", "null"},
		{"a resource is a string", stateWith("resources", `{"R":"x"}`), "resources.R", "R", "a string"},
		{"a resource is a list", stateWith("resources", `{"R":[]}`), "resources.R", "R", "a list"},
		{"resourceType is missing", resourceWith("resourceType", ``), "resources.R.resourceType", "R", "missing"},
		{"resourceType is empty", resourceWith("resourceType", `""`), "resources.R.resourceType", "R", "empty string"},
		{"resourceType is null", resourceWith("resourceType", `null`), "resources.R.resourceType", "R", "null"},
		{"resourceType is an object", resourceWith("resourceType", `{}`), "resources.R.resourceType", "R", "an object"},
		{"physicalId is missing", resourceWith("physicalId", ``), "resources.R.physicalId", "R", "missing"},
		{"physicalId is a number", resourceWith("physicalId", `1`), "resources.R.physicalId", "R", "a number"},
		{"properties is missing", resourceWith("properties", ``), "resources.R.properties", "R", "missing"},
		{"properties is null", resourceWith("properties", `null`), "resources.R.properties", "R", "null"},
		{"properties is a string", resourceWith("properties", `"x"`), "resources.R.properties", "R", "a string"},
		{"properties is a list", resourceWith("properties", `[]`), "resources.R.properties", "R", "a list"},
		{"properties is a boolean", resourceWith("properties", `false`), "resources.R.properties", "R", "a boolean"},
		{"attributes is a list", resourceWith("attributes", `[]`), "resources.R.attributes", "R", "a list"},
		{"attributes is null", resourceWith("attributes", `null`), "resources.R.attributes", "R", "null"},
		{"observedProperties is a string", resourceWith("observedProperties", `"x"`), "resources.R.observedProperties", "R", "a string"},
		{"metadata is a list", resourceWith("metadata", `[]`), "resources.R.metadata", "R", "a list"},
		{"dependencies is a string", resourceWith("dependencies", `"Queue"`), "resources.R.dependencies", "R", "a string"},
		{"dependencies holds a number", resourceWith("dependencies", `["A",1]`), "resources.R.dependencies.1", "R", "a number"},
		{"deletionPolicy is a list", resourceWith("deletionPolicy", `[]`), "resources.R.deletionPolicy", "R", "a list"},
		{"provisionedBy is null", resourceWith("provisionedBy", `null`), "resources.R.provisionedBy", "R", "null"},
		{"outputs is a string", stateWith("outputs", `"sixsix"`), "outputs", "", "a string"},
		{"outputs is a list", stateWith("outputs", `[]`), "outputs", "", "a list"},
		{"outputs is null", stateWith("outputs", `null`), "outputs", "", "null"},
		{"orphans is an object", stateWith("orphans", `{}`), "orphans", "", "an object"},
		{"orphans is null", stateWith("orphans", `null`), "orphans", "", "null"},
		{"orphans is a string", stateWith("orphans", `"x"`), "orphans", "", "a string"},
		{"an orphan is a string", stateWith("orphans", `["x"]`), "orphans.0", "", "a string"},
		{"an orphan has no logicalId", stateWith("orphans", `[{"state":`+okResource+`}]`), "orphans.0.logicalId", "", "missing"},
		{"an orphan has an empty logicalId", stateWith("orphans", `[`+orphan(`""`, okResource)+`]`), "orphans.0.logicalId", "", "a string"},
		{"an orphan has no state", stateWith("orphans", `[{"logicalId":"O"}]`), "orphans.0.state", "O", "missing"},
		{"an orphan's state is null", stateWith("orphans", `[`+orphan(`"O"`, `null`)+`]`), "orphans.0.state", "O", "null"},
		{"an orphan's properties are a list", stateWith("orphans", `[`+orphan(`"O"`, `{"physicalId":"p","resourceType":"T","properties":[]}`)+`]`), "orphans.0.state.properties", "O", "a list"},
		{"two orphans share a logicalId", stateWith("orphans", `[`+orphan(`"O"`, okResource)+`,`+orphan(`"O"`, okResource)+`]`), "orphans.1", "O", "same logicalId"},
		{"imports is an object", stateWith("imports", `{}`), "imports", "", "an object"},
		{"an import has no exportName", stateWith("imports", `[{"sourceStack":"A","sourceRegion":"r"}]`), "imports.0", "", "exportName"},
		{"an import is null", stateWith("imports", `[null]`), "imports.0", "", "exportName"},
		{"outputReads is a string", stateWith("outputReads", `"x"`), "outputReads", "", "a string"},
		{"parentStack is a number", stateWith("parentStack", `1`), "parentStack", "", "a number"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec, err := Decode([]byte(c.data))
			if rec != nil || !IsDamaged(err) {
				t.Fatalf("Decode = %v, %v", rec, err)
			}
			if Check([]byte(c.data)) == nil {
				t.Error("Check accepts it")
			}
			var found bool
			for _, d := range diag.From(err) {
				if d.Severity != diag.Error || d.Stack != "App" || d.Summary == "" || d.Next == "" {
					t.Errorf("incomplete diagnostic %+v", d)
				}
				if d.Path == c.path && d.LogicalID == c.logicalID && strings.Contains(d.Detail, c.detail) {
					found = true
				}
			}
			if !found {
				t.Errorf("no diagnostic for %s/%s with %q among:\n%v", c.logicalID, c.path, c.detail, err)
			}
			rec, warnings, err := DecodeLenient([]byte(c.data))
			if err != nil || rec == nil || rec.Resources == nil || rec.Outputs == nil {
				t.Fatalf("DecodeLenient = %v, %v", rec, err)
			}
			if len(warnings) == 0 || warnings.HasErrors() {
				t.Errorf("DecodeLenient warns %v", warnings)
			}
			for id, r := range rec.Resources {
				if r.ResourceType == "" || r.Properties == nil {
					t.Errorf("DecodeLenient returns %s as %+v", id, r)
				}
			}
			if _, err := rec.Encode(); err != nil {
				t.Errorf("what DecodeLenient returns cannot be encoded: %v", err)
			}
		})
	}
}

func TestEveryDamageOfARecordIsNamedAtOnce(t *testing.T) {
	_, err := Decode([]byte(`{"version":8,"stackName":"App","resources":{"A":null,"B":{"physicalId":"p","resourceType":"T","properties":[]}},"outputs":"x"}`))
	var paths []string
	for _, d := range diag.From(err) {
		paths = append(paths, d.Path)
	}
	if d := cmp.Diff([]string{"resources.A", "resources.B.properties", "outputs"}, paths); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
}

func TestTextThatIsNotARecordIsRefusedByBoth(t *testing.T) {
	for _, data := range []string{"", " ", "{", "nonsense", `{"resources":{}} {}`, "null", "[]", `"x"`, "7", "\xff", `{"version":8,"resources":{"A`} {
		if rec, err := Decode([]byte(data)); rec != nil || !IsDamaged(err) {
			t.Errorf("Decode(%q) = %v, %v", data, rec, err)
		}
		if rec, _, err := DecodeLenient([]byte(data)); rec != nil || !IsDamaged(err) {
			t.Errorf("DecodeLenient(%q) = %v, %v", data, rec, err)
		}
	}
}

func TestVersions(t *testing.T) {
	for version, want := range map[string]int{"": 1, "1": 1, "2": 2, "7": 7, "8": 8, "8.0": 8} {
		rec, err := Decode([]byte(stateWith("version", version)))
		if err != nil || rec.Version != want {
			t.Errorf("version %q: %v, %v", version, rec, err)
		}
	}
	for _, version := range []string{"9", "10", "0", "-1", "1.5", `"8"`, "null", "[]", "1e300", "true"} {
		rec, err := Decode([]byte(stateWith("version", version)))
		var v *VersionError
		if rec != nil || !errors.As(err, &v) {
			t.Errorf("version %q: %v, %v", version, rec, err)
			continue
		}
		if v.Stack != "App" || !strings.Contains(err.Error(), "upgrade") || !strings.Contains(err.Error(), "App") {
			t.Errorf("version %q: %v", version, err)
		}
		if _, _, err := DecodeLenient([]byte(stateWith("version", version))); !errors.As(err, &v) {
			t.Errorf("DecodeLenient, version %q: %v", version, err)
		}
	}
}

func TestUnknownMembersSurvive(t *testing.T) {
	data := stateWith("skippedOutputs", `{"a":"b"}`, "exportNames", `[]`, "future", `null`,
		"resources", `{"R":{"physicalId":"p","resourceType":"T","properties":{},"attributes":{},"big":12345678901234567890,"exp":1e3}}`,
		"orphans", `[{"logicalId":"O","orphanedAt":3,"why":"w","state":{"physicalId":"p","resourceType":"T","properties":{},"attributes":{},"x":1}}]`,
		"lastModified", "5")
	rec, err := Decode([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	got, err := rec.Encode()
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, "record", []byte(data), got)
}

// value draws any JSON value as the packages pass them around.
func value() *rapid.Generator[any] {
	return rapid.Deferred(func() *rapid.Generator[any] {
		return rapid.OneOf(
			rapid.Just[any](nil), rapid.Map(rapid.Bool(), func(b bool) any { return b }),
			rapid.Map(text(), func(s string) any { return s }),
			rapid.Map(rapid.SampledFrom([]string{"0", "-1", "1.50", "1e+21", "12345678901234567890", "0.1", "-0"}),
				func(s string) any { return json.Number(s) }),
			rapid.Map(rapid.SliceOfN(value(), 0, 3), func(l []any) any {
				if l == nil {
					return []any{}
				}
				return l
			}),
			rapid.Map(members(), func(m map[string]any) any { return m }),
		)
	})
}

func text() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "<&>", "\u2028", "{{resolve:ssm:/x}}", "***", "é"}))
}

func members() *rapid.Generator[map[string]any] { return rapid.MapOfN(text(), value(), 0, 3) }

func resourceRecord() *rapid.Generator[*Resource] {
	return rapid.Custom(func(t *rapid.T) *Resource {
		r := &Resource{
			PhysicalID: text().Draw(t, "physicalId"), ResourceType: "A" + text().Draw(t, "type"),
			Properties: members().Draw(t, "properties"), Attributes: members().Draw(t, "attributes"),
			DeletionPolicy: text().Draw(t, "policy"), ProvisionedBy: rapid.SampledFrom([]string{"", "sdk", "cc-api"}).Draw(t, "by"),
		}
		if rapid.Bool().Draw(t, "more") {
			r.Dependencies = rapid.SliceOfN(text(), 1, 3).Draw(t, "dependencies")
			r.ObservedProperties = rapid.MapOfN(text(), value(), 1, 3).Draw(t, "observed")
			r.Metadata = rapid.MapOfN(text(), value(), 1, 2).Draw(t, "metadata")
			r.Extra = map[string]json.RawMessage{"zz": []byte(`[1,2.0]`)}
		}
		return r
	})
}

func record() *rapid.Generator[*Record] {
	return rapid.Custom(func(t *rapid.T) *Record {
		r := &Record{
			Version: rapid.IntRange(1, 8).Draw(t, "version"), StackName: text().Draw(t, "stack"), Region: text().Draw(t, "region"),
			Resources: rapid.MapOfN(text(), resourceRecord(), 0, 4).Draw(t, "resources"), Outputs: members().Draw(t, "outputs"),
			LastModified: rapid.Int64Range(0, 1<<53).Draw(t, "lastModified"),
		}
		if rapid.Bool().Draw(t, "more") {
			r.Imports = []Import{{"S" + text().Draw(t, "s"), text().Draw(t, "r"), "E" + text().Draw(t, "e")}}
			r.Orphans = []Orphan{{LogicalID: "O" + text().Draw(t, "o"), OrphanedAt: 5, Resource: resourceRecord().Draw(t, "orphan")}}
			r.Extra = map[string]json.RawMessage{"skippedOutputs": []byte(`{"a":null}`)}
		}
		return r
	})
}

func TestWhatIsEncodedIsWhatIsDecoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := record().Draw(t, "record")
		data, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(data)
		if err != nil {
			t.Fatalf("%v in\n%s", err, data)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
		a, errA := Digest(want)
		b, errB := Digest(got)
		if a != b || errA != nil || errB != nil {
			t.Fatalf("the digest changes in the round trip: %v %v", errA, errB)
		}
	})
}

func TestDigestSaysWhetherTwoRecordsStateTheSame(t *testing.T) {
	digest := func(r *Record) string {
		t.Helper()
		d, err := Digest(r)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if digest(nil) != "" {
		t.Error("no record has a digest")
	}
	want := digest(full())
	for name, same := range map[string]func(*Record){
		"version":      func(r *Record) { r.Version = 3 },
		"lastModified": func(r *Record) { r.LastModified = 1 },
		"empty lists":  func(r *Record) { r.Resources["Topic"].Dependencies = []string{} },
		"nil maps":     func(r *Record) { r.Resources["Topic"].Attributes = map[string]any{} },
		"spaces":       func(r *Record) { r.Extra["skippedOutputs"] = []byte(`{"a":"<b>"}`) },
		"legacy":       func(r *Record) { r.LegacyETag = "x" },
	} {
		r := full()
		same(r)
		if digest(r) != want {
			t.Errorf("%s changes the digest", name)
		}
	}
	for name, other := range map[string]func(*Record){
		"output":   func(r *Record) { r.Outputs["Name"] = "m" },
		"property": func(r *Record) { r.Resources["Topic"].Properties["N"] = json.Number("2") },
		"resource": func(r *Record) { delete(r.Resources, "Topic") },
		"orphan":   func(r *Record) { r.Orphans = nil },
		"extra":    func(r *Record) { r.Extra = nil },
		"region":   func(r *Record) { r.Region = "us-east-1" },
	} {
		r := full()
		other(r)
		if digest(r) == want {
			t.Errorf("%s does not change the digest", name)
		}
	}
}

// FuzzDecode: no text makes Decode panic, and what it accepts it has understood completely: encoded again,
// nothing that was there is missing.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(stateWith()))
	f.Add([]byte(stateWith("resources", `[]`)))
	f.Add([]byte(stateWith("orphans", `[{"logicalId":"O","state":`+okResource+`}]`)))
	f.Add([]byte(resourceWith("dependencies", `["A"]`, "observedProperties", `{"a":1.0}`)))
	f.Add([]byte(`{"version":8,"Resources":{},"resources":{}}`))
	if data, err := full().Encode(); err == nil {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, _, err := DecodeLenient(data); err == nil && !json.Valid(data) {
			t.Fatal("DecodeLenient accepts what is not JSON")
		}
		rec, err := Decode(data)
		if err != nil {
			return
		}
		var m map[string]json.RawMessage
		if err := unmarshal(data, &m); err != nil {
			t.Fatalf("accepted: %v", err)
		}
		var resources map[string]json.RawMessage
		if err := unmarshal(m["resources"], &resources); err != nil || len(resources) != len(rec.Resources) {
			t.Fatalf("%d of %d resources were read: %v", len(rec.Resources), len(resources), err)
		}
		for id, r := range rec.Resources {
			if r == nil || r.ResourceType == "" || r.Properties == nil {
				t.Fatalf("resource %q was read as %+v", id, r)
			}
		}
		var outputs map[string]json.RawMessage
		if raw, ok := m["outputs"]; ok {
			if err := unmarshal(raw, &outputs); err != nil || len(outputs) != len(rec.Outputs) {
				t.Fatalf("%d of %d outputs were read: %v", len(rec.Outputs), len(outputs), err)
			}
		}
		encoded, err := rec.Encode()
		if err != nil {
			t.Fatalf("what was decoded cannot be encoded: %v", err)
		}
		again, err := Decode(encoded)
		if err != nil {
			t.Fatalf("what was encoded cannot be decoded: %v\n%s", err, encoded)
		}
		a, errA := Digest(rec)
		b, errB := Digest(again)
		if a != b || errA != nil || errB != nil {
			t.Fatalf("the round trip changes the record: %v %v", errA, errB)
		}
	})
}
