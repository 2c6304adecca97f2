package assembly

import (
	"strings"
	"testing"
)

func testAssembly() *Assembly {
	s := func(id, path, name string, deps ...string) *Stack {
		return &Stack{ID: id, DisplayName: path, Name: name, DependsOn: deps}
	}
	return &Assembly{Dir: "cdk.out", Stacks: []*Stack{
		s("Base", "Base", "Base"),
		s("assembly-Prod/NetA1", "Prod/Network", "Prod-Network", "Base"),
		s("assembly-Prod/WebB2", "Prod/Web", "prod-web", "Prod-Network"),
		s("Tools", "Tools", "Tools"),
	}}
}

func TestSelect(t *testing.T) {
	tests := []struct {
		name     string
		patterns []string
		opts     SelectOptions
		want     string
		added    string
	}{
		{"by physical name, with dependencies", []string{"prod-web"}, SelectOptions{}, "Base Prod-Network prod-web", "Base Prod-Network"},
		{"by path, exclusively", []string{"Prod/Web"}, SelectOptions{Exclusively: true}, "prod-web", ""},
		{"by artifact id", []string{"assembly-Prod/NetA1"}, SelectOptions{Exclusively: true}, "Prod-Network", ""},
		{"by glob on the path", []string{"Prod/*"}, SelectOptions{}, "Base Prod-Network prod-web", "Base"},
		{"by glob on the name", []string{"*-web"}, SelectOptions{Exclusively: true}, "prod-web", ""},
		{"by glob across levels", []string{"**"}, SelectOptions{}, "Base Prod-Network prod-web Tools", ""},
		{"by several patterns, in order of deployment", []string{"Tools", "Base"}, SelectOptions{}, "Base Tools", ""},
		{"all", nil, SelectOptions{All: true}, "Base Prod-Network prod-web Tools", ""},
		{"with dependents", []string{"Base"}, SelectOptions{Dependents: true}, "Base Prod-Network prod-web", "Prod-Network prod-web"},
		{"with dependents, exclusively", []string{"Base"}, SelectOptions{Dependents: true, Exclusively: true}, "Base", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			selected, added, err := Select(testAssembly(), tt.patterns, tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			if names(selected) != tt.want || names(added) != tt.added {
				t.Errorf("selected %q (added %q), want %q (added %q)", names(selected), names(added), tt.want, tt.added)
			}
		})
	}
}

func TestSelectWithoutPatternTakesTheOnlyStack(t *testing.T) {
	asm := &Assembly{Stacks: []*Stack{{ID: "A", DisplayName: "A", Name: "A"}}}
	selected, added, err := Select(asm, nil, SelectOptions{})
	if err != nil || names(selected) != "A" || len(added) != 0 {
		t.Errorf("selected %q, added %q, error %v", names(selected), names(added), err)
	}
}

func TestSelectRefuses(t *testing.T) {
	tests := []struct {
		name     string
		asm      *Assembly
		patterns []string
		opts     SelectOptions
		want     []string
	}{
		{"an assembly without stacks", &Assembly{}, nil, SelectOptions{All: true}, []string{"no stacks"}},
		{"no pattern for several stacks", testAssembly(), nil, SelectOptions{}, []string{"several stacks", "Base, Prod-Network (Prod/Network), prod-web (Prod/Web), Tools"}},
		{"names together with all", testAssembly(), []string{"Base"}, SelectOptions{All: true}, []string{"--all"}},
		{"an unknown name", testAssembly(), []string{"Prod-Netwrk"}, SelectOptions{}, []string{`no stack matches "Prod-Netwrk"`, "Tools"}},
		{"each unknown name", testAssembly(), []string{"x", "y"}, SelectOptions{}, []string{`"x"`, `"y"`}},
		{"a glob that matches nothing", testAssembly(), []string{"Test/*"}, SelectOptions{}, []string{`"Test/*"`}},
		{"a broken glob", testAssembly(), []string{"Prod/["}, SelectOptions{}, []string{"not a valid pattern"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Select(tt.asm, tt.patterns, tt.opts)
			if err == nil {
				t.Fatal("was accepted")
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
		})
	}
}

func TestNearestSuggestsOnlyWhatIsClose(t *testing.T) {
	for typed, want := range map[string]string{"prod-network": "Prod-Network", "Prod/Wbe": "Prod/Web", "zzz": ""} {
		if got := nearest(testAssembly(), typed); got != want {
			t.Errorf("nearest(%q) = %q, want %q", typed, got, want)
		}
	}
}
