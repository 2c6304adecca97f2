// Package gen writes cloud assemblies of our own making: small and large, of every shape of graph and with
// every intrinsic function, from types and properties that AWS accepts. They are what tests deploy that must
// run everywhere, without a CDK app and without Node.js. The same call always writes the same bytes.
//
// catalogue.go lists them; the files app_*.go hold them; build.go is the writer; resources.go makes single
// resources.
package gen

import (
	"fmt"
	"path/filepath"
	"slices"
)

// Spec describes an assembly that was written.
type Spec struct {
	Name string
	// About says in a few words what the assembly is for.
	About string
	// Dir holds its manifest.
	Dir string
	// Stacks counts the stacks, those of stages included.
	Stacks int
	// Resources counts the resources of all templates; Live those that exist after a deploy, that is without
	// those whose condition is false. AWS::CDK::Metadata is not used.
	Resources int
	Live      int
	// Intrinsics lists the intrinsic functions used, sorted: "Fn::Join", "Ref", and "AWS::NoValue".
	Intrinsics []string
	// LeavesBehind lists what a destroy leaves, because a DeletionPolicy says so: "stack/LogicalId".
	LeavesBehind []string
	// Versions is how many versions Variant knows; 1 means that there is only the original.
	Versions int
}

// Assemblies writes every assembly of the catalogue, each into a directory of its name below dir.
func Assemblies(dir string) ([]Spec, error) {
	var out []Spec
	for _, e := range catalogue() {
		s, err := e.write(filepath.Join(dir, e.name), 1)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// Variant writes version v of a named assembly into dir. Version 1 is what Assemblies writes; the higher ones
// change it: properties updated in place, resources replaced, added, removed and renamed, outputs changed.
// Spec.Versions says how many there are.
func Variant(dir, name string, v int) (Spec, error) {
	list := catalogue()
	i := slices.IndexFunc(list, func(e entry) bool { return e.name == name })
	if i < 0 {
		return Spec{}, fmt.Errorf("no assembly is called %q", name)
	}
	if v < 1 || v > list[i].versions {
		return Spec{}, fmt.Errorf("assembly %s has versions 1 to %d, not %d", name, list[i].versions, v)
	}
	return list[i].write(dir, v)
}

// Stack200 writes one stack of 200 resources with the dependencies of a real service landscape: 20 services,
// each with a role, a policy, a log group, a table, a queue with its dead-letter queue, a function, an event
// source mapping, a rule and an alarm. Benchmarks deploy it.
func Stack200(dir string) (Spec, error) { return Wide(dir, 200) }

// Wide writes one stack like Stack200 with n resources, n being at least 1.
func Wide(dir string, n int) (Spec, error) {
	if n < 1 {
		return Spec{}, fmt.Errorf("a stack of %d resources is not possible", n)
	}
	e := entry{
		name: fmt.Sprintf("wide-%d", n), about: fmt.Sprintf("%d resources of small services", n), versions: 1,
		build: func(a *app) { services(a.stack(fmt.Sprintf("Wide%d", n)), n) },
	}
	return e.write(dir, 1)
}
