package assembly

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/diag"
)

func names(stacks []*Stack) string {
	var out []string
	for _, s := range stacks {
		out = append(out, s.Name)
	}
	return strings.Join(out, " ")
}

func TestReadStack(t *testing.T) {
	template := "{\n\"Resources\": {\"Child\": {\"Type\": \"AWS::CloudFormation::Stack\", \"Metadata\": {\"aws:asset:path\": \"child.nested.template.json\"}}}}\n"
	dir := write(t, map[string]string{
		"manifest.json": `{"version": "48.0.0", "artifacts": {
			"Tree": {"type": "cdk:tree", "properties": {"file": "tree.json"}},
			"A.assets": {"type": "cdk:asset-manifest", "properties": {"file": "A.assets.json"}},
			"A": {"type": "aws:cloudformation:stack", "environment": "aws://111122223333/EU-West-1", "displayName": "Prod/A",
				"dependencies": ["A.assets", "Tree"], "additionalMetadataFile": "A.metadata.json",
				"metadata": {"/A/Bucket": [{"type": "aws:cdk:warning", "data": "careful"}, {"type": "aws:cdk:logicalId", "data": "Bucket"}],
					"/A": [{"type": "aws:cdk:stack-tags", "data": [{"Key": "team", "Value": "web"}, {"key": "cost", "value": "7"}]}]},
				"properties": {"templateFile": "A.template.json", "stackName": "prod-a", "parameters": {"P": "v"},
					"tags": {"team": "core"}, "terminationProtection": true}}}}`,
		"A.template.json":            template,
		"child.nested.template.json": emptyTemplate,
		"A.metadata.json":            `{"/A/Queue": [{"type": "aws:cdk:error", "data": {"Ref": "X"}}, {"type": "aws:cdk:info", "data": "fyi"}]}`,
		"asset.1/index.js":           "",
		"A.assets.json": `{"version": "48.0.0", "files": {
			"t": {"source": {"path": "A.template.json", "packaging": "file"}, "destinations": {}},
			"n": {"source": {"path": "child.nested.template.json", "packaging": "file"}, "destinations": {}},
			"1": {"displayName": "code", "source": {"path": "asset.1", "packaging": "zip"}, "destinations": {
				"here": {"bucketName": "b-${AWS::Region}", "objectKey": "1.zip", "region": "eu-west-1", "assumeRoleArn": "arn:x"}}}},
			"dockerImages": {"2": {"source": {"directory": "asset.2", "platform": "linux/arm64"}, "destinations": {
				"here": {"repositoryName": "r", "imageTag": "2"}}}}}`,
	})
	asm, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if asm.Version != "48.0.0" || len(asm.Stacks) != 1 {
		t.Fatalf("version %q, %d stacks", asm.Version, len(asm.Stacks))
	}
	want := &Stack{
		ID: "A", DisplayName: "Prod/A", Name: "prod-a", Account: "111122223333", Region: "eu-west-1",
		TemplatePath: dir + "/A.template.json", Template: []byte(template),
		Parameters: map[string]string{"P": "v"}, Tags: map[string]string{"team": "core", "cost": "7"}, TerminationProtection: true,
		NestedTemplates: map[string]string{"Child": dir + "/child.nested.template.json"},
		Assets: []Asset{
			{ID: "1", Kind: AssetFile, DisplayName: "code", Path: dir + "/asset.1", Packaging: "zip", Destinations: []Destination{
				{ID: "here", Bucket: "b-${AWS::Region}", Key: "1.zip", Region: "eu-west-1", AssumeRoleARN: "arn:x"}}},
			{ID: "2", Kind: AssetImage, Path: dir + "/asset.2", Image: map[string]any{"directory": "asset.2", "platform": "linux/arm64"},
				Destinations: []Destination{{ID: "here", Repository: "r", Tag: "2"}}},
		},
		Messages: []Message{
			{LevelWarning, "/A/Bucket", "careful"},
			{LevelError, "/A/Queue", `{"Ref": "X"}`},
			{LevelInfo, "/A/Queue", "fyi"},
		},
	}
	if d := cmp.Diff(want, asm.Stacks[0], cmp.AllowUnexported(Stack{})); d != "" {
		t.Error(d)
	}
}

func TestReadOrdersStacks(t *testing.T) {
	stack := func(id, deps string) string {
		return `"` + id + `": {"type": "aws:cloudformation:stack", "environment": "aws://unknown-account/unknown-region",
			"dependencies": [` + deps + `], "properties": {"templateFile": "t.template.json"}}`
	}
	tests := []struct{ name, artifacts, want string }{
		{"independent stacks keep the order of the manifest", stack("Z", "") + "," + stack("A", "") + "," + stack("M", ""), "Z A M"},
		{"a dependency goes first", stack("A", `"B"`) + "," + stack("B", `"C"`) + "," + stack("C", ""), "C B A"},
		{"a diamond", stack("Top", `"L","R"`) + "," + stack("R", `"Base"`) + "," + stack("L", `"Base"`) + "," + stack("Base", ""), "Base R L Top"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, map[string]string{
				"manifest.json":   `{"version": "55.0.0", "artifacts": {` + tt.artifacts + `}}`,
				"t.template.json": emptyTemplate,
			})
			asm, err := Read(dir)
			if err != nil {
				t.Fatal(err)
			}
			if got := names(asm.Stacks); got != tt.want {
				t.Errorf("order %q, want %q", got, tt.want)
			}
		})
	}
}

func TestReadNestedAssemblies(t *testing.T) {
	nested := func(name, region, deps string) string {
		return `{"version": "55.0.0", "artifacts": {
			"X.assets": {"type": "cdk:asset-manifest", "properties": {"file": "X.assets.json"}},
			"X": {"type": "aws:cloudformation:stack", "environment": "aws://unknown-account/` + region + `", "displayName": "` + name + `/X",
				"dependencies": ["X.assets"` + deps + `], "properties": {"templateFile": "X.template.json", "stackName": "` + name + `-X"}},
			"Y": {"type": "aws:cloudformation:stack", "environment": "aws://unknown-account/` + region + `", "displayName": "` + name + `/Y",
				"properties": {"templateFile": "X.template.json", "stackName": "` + name + `-Y"}}}}`
	}
	// A nested assembly's assets are staged beside it, in the outer directory.
	assets := `{"version": "55.0.0", "files": {"1": {"source": {"path": "../asset.1", "packaging": "file"},
		"destinations": {"d": {"bucketName": "b", "objectKey": "1"}}}}}`
	dir := write(t, map[string]string{
		"manifest.json": `{"version": "55.0.0", "missing": [{"key": "k", "provider": "ssm", "props": {"region": "r"}}], "artifacts": {
			"assembly-Prod": {"type": "cdk:cloud-assembly", "dependencies": ["assembly-Test"], "properties": {"directoryName": "assembly-Prod"}},
			"assembly-Test": {"type": "cdk:cloud-assembly", "properties": {"directoryName": "assembly-Test"}},
			"Final": {"type": "aws:cloudformation:stack", "dependencies": ["assembly-Prod"], "properties": {"templateFile": "F.template.json"}}}}`,
		"F.template.json":               emptyTemplate,
		"asset.1":                       "",
		"assembly-Prod/manifest.json":   nested("Prod", "eu-west-1", `, "Y"`),
		"assembly-Prod/X.template.json": emptyTemplate,
		"assembly-Prod/X.assets.json":   assets,
		"assembly-Test/manifest.json":   nested("Test", "eu-west-2", ""),
		"assembly-Test/X.template.json": emptyTemplate,
		"assembly-Test/X.assets.json":   assets,
	})
	asm, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(asm.Stacks), "Test-X Test-Y Prod-Y Prod-X Final"; got != want {
		t.Errorf("order %q, want %q", got, want)
	}
	x := asm.Stacks[3]
	if x.ID != "assembly-Prod/X" || x.Region != "eu-west-1" || x.Assets[0].Path != dir+"/asset.1" {
		t.Errorf("stack %+v", x)
	}
	if got, want := strings.Join(x.DependsOn, " "), "Prod-Y Test-X Test-Y"; got != want {
		t.Errorf("Prod/X depends on %q, want %q", got, want)
	}
	if len(x.Dependencies()) != 3 {
		t.Errorf("Dependencies: %q", names(x.Dependencies()))
	}
	if len(asm.Missing) != 1 || asm.Missing[0].Provider != "ssm" {
		t.Errorf("missing %v", asm.Missing)
	}
}

func TestReadToleratesAMissingMetadataFileWithAWarning(t *testing.T) {
	asm, err := Read(write(t, oneStack(`, "additionalMetadataFile": "gone.json"`, "")))
	if err != nil {
		t.Fatal(err)
	}
	if m := asm.Stacks[0].Messages; len(m) != 1 || m[0].Level != LevelWarning || !strings.Contains(m[0].Text, "gone.json") {
		t.Errorf("messages %v", m)
	}
}

func TestReadRefuses(t *testing.T) {
	with := func(files map[string]string, name, content string) map[string]string {
		if content == "" {
			delete(files, name)
		} else {
			files[name] = content
		}
		return files
	}
	assetManifest := func(source string) map[string]string {
		return map[string]string{
			"manifest.json": `{"version": "55.0.0", "artifacts": {
				"A.assets": {"type": "cdk:asset-manifest", "properties": {"file": "A.assets.json"}},
				"A": {"type": "aws:cloudformation:stack", "dependencies": ["A.assets"], "properties": {"templateFile": "A.template.json"}}}}`,
			"A.template.json": emptyTemplate,
			"A.assets.json": `{"version": "55.0.0", "files": {"1": {"source": ` + source + `,
				"destinations": {"d": {"bucketName": "b", "objectKey": "k"}}}}}`,
		}
	}
	tests := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"a directory without manifest", map[string]string{"a.txt": "x"}, "no cloud assembly in"},
		{"an empty manifest", map[string]string{"manifest.json": ""}, "it is empty"},
		{"a manifest that is not JSON", map[string]string{"manifest.json": "{\n\"version\": \"55.0.0\",\n oops}"}, "line 3"},
		{"a manifest that is no object", map[string]string{"manifest.json": `[1]`}, "cannot read"},
		{"artifacts that are no object", map[string]string{"manifest.json": `{"version": "55.0.0", "artifacts": []}`}, "expected an object"},
		{"an artifact that is null", map[string]string{"manifest.json": `{"version": "55.0.0", "artifacts": {"A": null}}`}, `artifact "A" is null`},
		{"a manifest without version", map[string]string{"manifest.json": `{"artifacts": {}}`}, "not a version number"},
		{"a manifest that is newer", map[string]string{"manifest.json": `{"version": "56.0.0", "minimumCliVersion": "2.2000.0"}`}, "schema version 56.0.0, and this Slipway reads versions up to 55"},
		{"a template that is missing", with(oneStack("", ""), "A.template.json", ""), "A: the template is missing"},
		{"a template that is not JSON", with(oneStack("", ""), "A.template.json", "{"), "A: cannot read"},
		{"a template outside", with(oneStack("", ""), "manifest.json", `{"version": "55.0.0", "artifacts": {"A": {"type": "aws:cloudformation:stack", "properties": {"templateFile": "../A.template.json"}}}}`), "the template lies outside"},
		{"an absolute template", with(oneStack("", ""), "manifest.json", `{"version": "55.0.0", "artifacts": {"A": {"type": "aws:cloudformation:stack", "properties": {"templateFile": "/etc/passwd"}}}}`), "is an absolute path"},
		{"a stack without template", map[string]string{"manifest.json": `{"version": "55.0.0", "artifacts": {"A": {"type": "aws:cloudformation:stack", "properties": {}}}}`}, "the template has no path"},
		{"a nested template outside", with(oneStack("", ""), "A.template.json", `{"Resources": {"N": {"Type": "AWS::CloudFormation::Stack", "Metadata": {"aws:asset:path": "/x"}}}}`), "nested stack N lies outside"},
		{"a nested template that is missing", with(oneStack("", ""), "A.template.json", `{"Resources": {"N": {"Type": "AWS::CloudFormation::Stack", "Metadata": {"aws:asset:path": "x"}}}}`), "A/N: the template of a nested stack is missing"},
		{"a nested assembly outside", map[string]string{"manifest.json": `{"version": "55.0.0", "artifacts": {"N": {"type": "cdk:cloud-assembly", "properties": {"directoryName": ".."}}}}`}, "nested assembly N lies outside"},
		{"an assembly nested in itself", map[string]string{"manifest.json": `{"version": "55.0.0", "artifacts": {"N": {"type": "cdk:cloud-assembly", "properties": {"directoryName": "."}}}}`}, "nested more than once"},
		{"a dependency on nothing", oneStack(`, "dependencies": ["B"]`, ""), `artifact "A" depends on "B", which it does not have`},
		{"an environment in another form", with(oneStack("", ""), "manifest.json", `{"version": "55.0.0", "artifacts": {"A": {"type": "aws:cloudformation:stack", "environment": "eu-west-1", "properties": {"templateFile": "A.template.json"}}}}`), "aws://account/region"},
		{"a metadata file that is not JSON", with(oneStack(`, "additionalMetadataFile": "m.json"`, ""), "m.json", "nope"), "m.json"},
		{"an asset manifest that is missing", with(assetManifest(`{}`), "A.assets.json", ""), "the asset manifest is missing"},
		{"an asset manifest that is newer", with(assetManifest(`{}`), "A.assets.json", `{"version": "99.0.0"}`), "newer than this Slipway"},
		{"an asset outside", assetManifest(`{"path": "../secret", "packaging": "file"}`), "asset 1 lies outside"},
		{"an absolute asset", assetManifest(`{"path": "/root/.ssh", "packaging": "zip"}`), "asset 1 lies outside"},
		{"an unknown packaging", assetManifest(`{"path": "a", "packaging": "tar"}`), `its packaging "tar"`},
		{"stacks in a circle", map[string]string{
			"manifest.json": `{"version": "55.0.0", "artifacts": {
				"A": {"type": "aws:cloudformation:stack", "dependencies": ["B"], "properties": {"templateFile": "t"}},
				"B": {"type": "aws:cloudformation:stack", "dependencies": ["C"], "properties": {"templateFile": "t"}},
				"C": {"type": "aws:cloudformation:stack", "dependencies": ["B"], "properties": {"templateFile": "t"}}}}`,
			"t": emptyTemplate,
		}, "circle: B → C → B"},
		{"two stacks of one name in one environment", map[string]string{
			"manifest.json": `{"version": "55.0.0", "artifacts": {
				"A": {"type": "aws:cloudformation:stack", "properties": {"templateFile": "t", "stackName": "S"}},
				"B": {"type": "aws:cloudformation:stack", "properties": {"templateFile": "t", "stackName": "S"}}}}`,
			"t": emptyTemplate,
		}, `A and B are both "S"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Read(write(t, tt.files))
			if err == nil {
				t.Fatal("was accepted")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q does not say %q", err, tt.want)
			}
			for _, d := range diag.From(err) {
				if d.Next == "" {
					t.Errorf("%q does not say what to do next", d.Summary)
				}
			}
		})
	}
}

func TestReadAcceptsOneNameInTwoEnvironments(t *testing.T) {
	dir := write(t, map[string]string{
		"manifest.json": `{"version": "55.0.0", "artifacts": {
			"A": {"type": "aws:cloudformation:stack", "environment": "aws://1/us-east-1", "dependencies": ["B"], "properties": {"templateFile": "t", "stackName": "S"}},
			"B": {"type": "aws:cloudformation:stack", "environment": "aws://1/eu-west-1", "properties": {"templateFile": "t", "stackName": "S"}}}}`,
		"t": emptyTemplate,
	})
	asm, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if asm.Stacks[0].Region != "eu-west-1" || len(asm.Stacks[1].Dependencies()) != 1 {
		t.Errorf("stacks %+v, %+v", asm.Stacks[0], asm.Stacks[1])
	}
}

func FuzzReadManifest(f *testing.F) {
	for _, files := range []map[string]string{oneStack("", ""), oneStack(`, "dependencies": ["A"]`, `, "tags": {"a": "b"}`)} {
		f.Add(files["manifest.json"])
	}
	f.Fuzz(func(t *testing.T, manifest string) {
		asm, err := Read(write(t, map[string]string{"manifest.json": manifest, "A.template.json": emptyTemplate}))
		if (asm == nil) == (err == nil) {
			t.Fatalf("assembly %v and error %v", asm, err)
		}
	})
}

func TestReadFSReadsWhatReadDoes(t *testing.T) {
	files := map[string]string{
		"manifest.json": `{"version": "48.0.0", "artifacts": {
			"A.assets": {"type": "cdk:asset-manifest", "properties": {"file": "A.assets.json"}},
			"A": {"type": "aws:cloudformation:stack", "dependencies": ["A.assets"], "properties": {"templateFile": "A.template.json"}}}}`,
		"A.template.json":            `{"Resources": {"Child": {"Type": "AWS::CloudFormation::Stack", "Metadata": {"aws:asset:path": "child.nested.template.json"}}}}`,
		"child.nested.template.json": emptyTemplate,
		"asset.1/index.js":           "",
		"A.assets.json": `{"version": "48.0.0", "files": {"1": {"source": {"path": "asset.1", "packaging": "zip"},
			"destinations": {"here": {"bucketName": "b", "objectKey": "1.zip"}}}}}`,
	}
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	asm, err := ReadFS(fsys)
	if err != nil {
		t.Fatal(err)
	}
	s := asm.Stacks[0]
	if rel, err := asm.Rel(s.Assets[0].Path); err != nil || rel != "asset.1" {
		t.Errorf("the asset is %q, %v", rel, err)
	}
	path := s.NestedTemplates["Child"]
	body, err := asm.ReadFile(path)
	if err != nil || string(body) != emptyTemplate {
		t.Errorf("the nested template is %q, %v", body, err)
	}
	if inner, err := asm.Nested(s, path, body); err != nil || len(inner) != 0 {
		t.Errorf("%v, %v", inner, err)
	}
	// A path out of the assembly is refused here too, though no disk is behind it.
	fsys["A.assets.json"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(files["A.assets.json"], "asset.1", "../../etc/passwd"))}
	if _, err := ReadFS(fsys); err == nil || !strings.Contains(err.Error(), "outside of the cloud assembly") {
		t.Errorf("%v", err)
	}
	if _, err := ReadFS(fstest.MapFS{}); err == nil || !strings.Contains(err.Error(), "no cloud assembly") {
		t.Errorf("%v", err)
	}
}
