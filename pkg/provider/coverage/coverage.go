// Package coverage is what the direct providers can set, as data: which types have one, and which properties. Whoever has to
// route a type as on AWS and has no use for the services' clients asks it. The data is generated from the providers
// (go test ./pkg/provider/conformance -update); its test keeps it true.
package coverage

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

//go:embed coverage.json
var data []byte

// Coverage is the properties that the direct provider of each type sets, by type name.
type Coverage map[string][]string

// Load returns the coverage of this release.
var Load = sync.OnceValue(func() Coverage {
	var c Coverage
	if err := json.Unmarshal(data, &c); err != nil {
		panic(fmt.Sprintf("the coverage of direct providers: %v", err)) // it is part of the program
	}
	return c
})

// Types are the types that have a direct provider, sorted.
func (c Coverage) Types() []string { return slices.Sorted(maps.Keys(c)) }

// Unhandled is provider.Registry.Unhandled: those of the properties that the direct provider of a type can't set.
func (c Coverage) Unhandled(typeName string, properties []string) []string {
	handled, ok := c[typeName]
	if !ok {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(properties), func(p string) bool { return slices.Contains(handled, p) })
}

// Encode writes a coverage as the data file has it: a line for each type.
func (c Coverage) Encode() ([]byte, error) {
	lines := make([]string, 0, len(c))
	for _, name := range c.Types() {
		handled, err := json.Marshal(c[name])
		if err != nil {
			return nil, fmt.Errorf("encoding the coverage of %s: %w", name, err)
		}
		lines = append(lines, fmt.Sprintf("%q: %s", name, handled))
	}
	return []byte("{\n" + strings.Join(lines, ",\n") + "\n}\n"), nil
}
