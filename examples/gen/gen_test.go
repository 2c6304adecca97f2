package gen

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/asset"
	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/schema"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// versions writes every version of every assembly, the wide ones included, and calls f with each.
func versions(t *testing.T, f func(t *testing.T, spec Spec, version int, asm *assembly.Assembly)) {
	t.Helper()
	visit := func(name string, v int, write func(dir string) (Spec, error)) {
		t.Run(fmt.Sprintf("%s v%d", name, v), func(t *testing.T) {
			spec, err := write(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			asm, err := assembly.Read(spec.Dir)
			if err != nil {
				t.Fatal(err)
			}
			f(t, spec, v, asm)
		})
	}
	for _, e := range catalogue() {
		for v := 1; v <= e.versions; v++ {
			visit(e.name, v, func(dir string) (Spec, error) { return Variant(dir, e.name, v) })
		}
	}
	for _, n := range []int{1, 17, 200} {
		visit(fmt.Sprintf("wide-%d", n), 1, func(dir string) (Spec, error) { return Wide(dir, n) })
	}
}

func parse(t *testing.T, s *assembly.Stack) *template.Template {
	t.Helper()
	tmpl, err := template.Parse(s.Template)
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	if ds := template.Validate(tmpl); len(ds) > 0 {
		t.Fatalf("%s: %v", s.Name, ds)
	}
	return tmpl
}

func TestTheCatalogueIsVaried(t *testing.T) {
	specs, err := Assemblies(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if len(specs) < 32 {
		t.Errorf("%d assemblies, want at least 32", len(specs))
	}
	w := table.NewWriter()
	w.AppendHeader(table.Row{"assembly", "stacks", "resources", "live", "versions", "intrinsics"})
	used := map[string]bool{}
	types := map[string]bool{}
	largest, withVersions := 0, 0
	for _, s := range specs {
		w.AppendRow(table.Row{s.Name, s.Stacks, s.Resources, s.Live, s.Versions, strings.Join(s.Intrinsics, " ")})
		largest = max(largest, s.Resources)
		if s.Versions > 1 {
			withVersions++
		}
		for _, i := range s.Intrinsics {
			used[i] = true
		}
		asm, err := assembly.Read(s.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, st := range asm.Stacks {
			for _, r := range parse(t, st).Resources {
				types[r.Type] = true
			}
		}
	}
	t.Logf("%d resource types\n%s", len(types), w.Render())
	for _, f := range []string{
		"Ref", "AWS::NoValue", "Fn::And", "Fn::Base64", "Fn::Cidr", "Fn::Equals", "Fn::FindInMap", "Fn::GetAZs", "Fn::GetAtt", "Fn::If",
		"Fn::ImportValue", "Fn::Join", "Fn::Not", "Fn::Or", "Fn::Select", "Fn::Split", "Fn::Sub",
	} {
		if !used[f] {
			t.Errorf("no assembly uses %s", f)
		}
	}
	if largest < 200 || withVersions < 10 || len(types) < 40 {
		t.Errorf("largest stack %d resources, %d assemblies with versions, %d resource types", largest, withVersions, len(types))
	}
}

// TestPropertiesAreValid resolves every template, with stand-ins for what only a deploy can know, and checks
// every resource against what AWS accepts.
func TestPropertiesAreValid(t *testing.T) {
	versions(t, func(t *testing.T, spec Spec, _ int, asm *assembly.Assembly) {
		live := 0
		for _, s := range asm.Stacks {
			tmpl := parse(t, s)
			scope := scopeOf(t, s, tmpl)
			resolver := intrinsic.NewResolver(scope)
			for id, r := range tmpl.Resources {
				if r.Condition != "" && !scope.Conditions[r.Condition] {
					continue
				}
				live++
				typ, ok := schema.Lookup(r.Type)
				if !ok {
					t.Errorf("%s/%s: AWS has no %s", s.Name, id, r.Type)
					continue
				}
				properties, err := resolver.ResolveProperties(r.Properties, "Properties")
				if err != nil {
					t.Errorf("%s/%s: %v", s.Name, id, err)
					continue
				}
				options := schema.Options{Lenient: true, Opaque: func(v any) bool { _, ok := v.(intrinsic.Unknown); return ok }}
				for _, p := range schema.Validate(typ, properties, options) {
					t.Errorf("%s/%s (%s): %s", s.Name, id, r.Type, p)
				}
			}
			for name, o := range tmpl.Outputs {
				if o.Condition != "" && !scope.Conditions[o.Condition] {
					continue
				}
				if _, err := resolver.Resolve(o.Value, "Outputs."+name); err != nil {
					t.Errorf("%s: output %s: %v", s.Name, name, err)
				}
			}
		}
		if live != spec.Live {
			t.Errorf("%d resources are live, the description says %d", live, spec.Live)
		}
	})
}

// scopeOf is the scope of a first deploy: no resource exists, and every import is pending.
func scopeOf(t *testing.T, s *assembly.Stack, tmpl *template.Template) *intrinsic.Scope {
	t.Helper()
	bound, ds := tmpl.BindParameters(nil, nil)
	if len(ds) > 0 {
		t.Fatalf("%s: %v", s.Name, ds)
	}
	region := "eu-west-1"
	if s.Region != "" {
		region = s.Region
	}
	scope := &intrinsic.Scope{
		Template: tmpl, Parameters: bound, Schema: schema.Lookup,
		Pseudo: intrinsic.Pseudo{AccountID: "111122223333", Region: region, Partition: "aws", URLSuffix: "amazonaws.com", StackName: s.Name,
			StackID: "arn:aws:cloudformation:" + region + ":111122223333:stack/" + s.Name + "/1"},
		Zones:          map[string][]string{region: {region + "a", region + "b", region + "c"}},
		PendingImports: map[string]bool{},
	}
	for _, name := range imports(s.Template) {
		scope.PendingImports[name] = true
	}
	conditions, ds := intrinsic.EvaluateConditions(tmpl, bound, scope.Pseudo)
	if len(ds) > 0 {
		t.Fatalf("%s: %v", s.Name, ds)
	}
	scope.Conditions = conditions
	return scope
}

// imports lists what a template imports.
func imports(text []byte) []string {
	var root any
	if err := json.Unmarshal(text, &root); err != nil {
		return nil
	}
	var out []string
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if name, ok := v["Fn::ImportValue"].(string); ok {
				out = append(out, name)
			}
			for _, e := range v {
				walk(e)
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(root)
	return out
}

func TestEveryImportIsExportedByAStackThatGoesFirst(t *testing.T) {
	versions(t, func(t *testing.T, _ Spec, _ int, asm *assembly.Assembly) {
		exported := map[string]bool{}
		for _, s := range asm.Stacks {
			for _, name := range imports(s.Template) {
				if !exported[name] {
					t.Errorf("%s imports %s, which no stack before it exports", s.Name, name)
				}
			}
			for _, o := range parse(t, s).Outputs {
				if name, ok := o.ExportName.(string); ok {
					exported[name] = true
				}
			}
		}
	})
}

func TestEveryAssetCanBePublished(t *testing.T) {
	versions(t, func(t *testing.T, _ Spec, _ int, asm *assembly.Assembly) {
		store := asset.LocalBucket{Dir: t.TempDir()}
		for _, s := range asm.Stacks {
			for _, a := range s.Assets {
				p := asset.Publisher{Bucket: store}
				out, err := p.Publish(t.Context(), a, asset.Env{Account: "111122223333", Region: "eu-west-1"})
				if err != nil || len(out.Destinations) != 1 {
					t.Fatalf("%s: %v", a.DisplayName, err)
				}
				// The template must name the object, by its key.
				if !strings.Contains(string(s.Template), `"`+out.Destinations[0].Key+`"`) {
					t.Errorf("%s: no resource uses %s", s.Name, out.Destinations[0].Key)
				}
			}
		}
	})
}

// TestEachVersionChangesSomething guards against versions that are the same in all but number.
func TestEachVersionChangesSomething(t *testing.T) {
	for _, e := range catalogue() {
		seen := map[string]int{}
		for v := 1; v <= e.versions; v++ {
			dir := t.TempDir()
			if _, err := Variant(dir, e.name, v); err != nil {
				t.Fatal(err)
			}
			var all strings.Builder
			for _, text := range tree(t, dir) {
				all.WriteString(text)
			}
			if before, ok := seen[all.String()]; ok {
				t.Errorf("%s: version %d is version %d", e.name, v, before)
			}
			seen[all.String()] = v
		}
	}
}

func TestAssembliesAreAlwaysTheSame(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	for _, dir := range []string{one, two} {
		if _, err := Assemblies(dir); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(tree(t, one), tree(t, two)); d != "" {
		t.Error(d)
	}
}

// tree is every file below dir: "path\ncontent", sorted.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out = append(out, rel+"\n"+string(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWideHasTheNumberOfResourcesAskedFor(t *testing.T) {
	for _, n := range []int{1, 9, 10, 11, 200, 500} {
		spec, err := Wide(t.TempDir(), n)
		if err != nil || spec.Resources != n || spec.Live != n {
			t.Errorf("Wide(%d): %d resources, error %v", n, spec.Resources, err)
		}
	}
	if _, err := Wide(t.TempDir(), 0); err == nil {
		t.Error("a stack without resources was written")
	}
}

func TestVariantRefusesWhatItDoesNotHave(t *testing.T) {
	for _, tt := range []struct {
		name    string
		version int
	}{{"nothing", 1}, {"one-queue", 0}, {"one-queue", 5}, {"lattice", 2}} {
		if _, err := Variant(t.TempDir(), tt.name, tt.version); err == nil {
			t.Errorf("version %d of %s was written", tt.version, tt.name)
		}
	}
}

func TestWhatIsLeftBehindIsDeclared(t *testing.T) {
	versions(t, func(t *testing.T, spec Spec, _ int, asm *assembly.Assembly) {
		var left []string
		for _, s := range asm.Stacks {
			for id, r := range parse(t, s).Resources {
				if r.DeletionPolicy != nil && r.DeletionPolicy != "Delete" {
					left = append(left, s.Name+"/"+id)
				}
			}
		}
		slices.Sort(left)
		if d := cmp.Diff(left, spec.LeavesBehind); d != "" {
			t.Error(d)
		}
	})
}
