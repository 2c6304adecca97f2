package sandbox

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

// own is what a type's service calls a resource in its own API, where that is not what Cloud Control calls it.
type own struct {
	// id is the template of the physical id; it stays what it was at the creation.
	id string
	// of are the properties that tell resources with one id apart: a stage is called "prod" in every API that has one. Without
	// them the id is unique in the account and region.
	of []string
	// answers are attributes that the service's API gives otherwise than Cloud Control, or that only it gives.
	answers []rule
}

// parseOwn reads what follows "direct" in the shape table.
func (s *shape) parseOwn(line string) error {
	path, template, ok := strings.Cut(line, " = ")
	if !ok {
		return fmt.Errorf("no template after direct %s", path)
	}
	if s.own == nil {
		s.own = &own{}
	}
	if path != "id" {
		s.own.answers = append(s.own.answers, rule{path: path, template: template})
		return nil
	}
	s.own.id, _, _ = strings.Cut(template, " of ")
	if _, of, ok := strings.Cut(template, " of "); ok {
		s.own.of = strings.Fields(of)
	}
	return nil
}

// call writes into a completed resource what the service's own API calls it and answers of it. Nothing is made up in
// the model any more.
func (m *maker) call(row *resourceRow) {
	row.direct = row.identifier
	if m.shape == nil || m.shape.own == nil {
		return
	}
	m.settled = true
	if m.shape.own.id != "" {
		row.direct = m.expand(m.shape.own.id)
	}
	m.physical = row.direct
	row.answers = map[string]any{}
	for _, r := range m.shape.own.answers {
		row.answers[r.path] = m.typed(r.path, m.expand(r.template))
	}
}

// joined is the list at a path, with a separator between its texts.
func (m *maker) joined(path, separator string) string {
	var texts []string
	visit(m.model, []string{path, "*"}, func(v any) {
		if s, ok := v.(string); ok {
			texts = append(texts, s)
		}
	})
	return strings.Join(texts, separator)
}

// calledBy is the identifier of the resource in the API of a route.
func (r *resourceRow) calledBy(via route) string {
	if via == routeDirect {
		return r.direct
	}
	return r.identifier
}

// query finds the resources that a route's API may mean by an identifier, the oldest first.
func query(via route, caller Caller, typeName, identifier string) (statement string, args []any) {
	column := "identifier"
	if via == routeDirect {
		column = "direct"
	}
	return `SELECT ` + resourceColumns + ` FROM resources WHERE type = ? AND account = ? AND region = ? AND ` + column + ` = ? ORDER BY id`,
		[]any{typeName, caller.Account, caller.scopeOf(typeName), identifier}
}

// scanAll reads rows of resourceColumns.
func scanAll(into *[]resourceRow) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		r, err := scanResource(rows.Scan)
		*into = append(*into, r)
		return err
	}
}

// read finds the live resource that a route's API means by an identifier, and what a reader sees of it. A *Refusal with the
// code ResourceNotFoundException when there is none.
func (s *Sandbox) read(ctx context.Context, via route, caller Caller, typeName, identifier string, known map[string]any) (resourceRow, map[string]any, error) {
	statement, args := query(via, caller, typeName, identifier)
	rows, err := s.db.read.QueryContext(ctx, statement, args...)
	if err != nil {
		return resourceRow{}, nil, fmt.Errorf("reading from the sandbox: %w", err)
	}
	var found []resourceRow
	if err := eachRow(rows, scanAll(&found)); err != nil {
		return resourceRow{}, nil, fmt.Errorf("reading from the sandbox: %w", err)
	}
	now := s.now()
	found = slices.DeleteFunc(found, func(r resourceRow) bool { _, there := r.visible(now); return !there })
	r, ok := meant(s.shapes[typeName], found, []map[string]any{known})
	if !ok {
		return resourceRow{}, nil, refuse(codeNotFound, "Resource of type '%s' with identifier '%s' was not found.", typeName, identifier)
	}
	model, _ := r.visible(now)
	return r, model, nil
}

// meant returns the resource that is meant among those with one id: the first that belongs to what the caller knows of it.
func meant(s *shape, found []resourceRow, known []map[string]any) (resourceRow, bool) {
	for _, r := range found {
		if s == nil || s.own == nil || s.own.belongs(r.model, known) {
			return r, true
		}
	}
	return resourceRow{}, false
}

// belongs reports whether a model has, in the properties that tell resources of one id apart, any of the values that the
// caller knows; also where the caller knows none, or the model has none.
func (o *own) belongs(model map[string]any, known []map[string]any) bool {
	if len(o.of) == 0 {
		return true
	}
	var want []string
	for _, properties := range known {
		want = append(want, o.owners(properties)...)
	}
	owners := o.owners(model)
	return len(want) == 0 || len(owners) == 0 || slices.ContainsFunc(owners, func(v string) bool { return slices.Contains(want, v) })
}

// owners are the values of the properties that tell resources apart, with the property's name.
func (o *own) owners(model map[string]any) []string {
	var out []string
	for _, path := range o.of {
		visit(model, []string{path}, func(v any) {
			if list, ok := v.([]any); ok {
				for _, item := range list {
					out = append(out, path+" "+encode(item))
				}
				return
			}
			out = append(out, path+" "+encode(v))
		})
	}
	return out
}

// settableOf is the part of a model that a template may set.
func settableOf(t *schema.Type, model map[string]any) map[string]any {
	m := withoutReadOnly(t, model)
	for name := range m {
		if len(t.Properties) > 0 && !settable(t, []string{name}) {
			delete(m, name)
		}
	}
	return m
}

// attributesOf are the attributes that the service's own API gives of a resource: what Fn::GetAtt may read, whole objects
// in place of their members.
func attributesOf(t *schema.Type, model, answers map[string]any) map[string]any {
	out := map[string]any{}
	for _, name := range sortedKeys(t.Attributes) {
		head, _, nested := strings.Cut(name, ".")
		if _, whole := t.Attributes[head]; nested && whole {
			continue
		}
		if v, ok := get(model, strings.ReplaceAll(name, ".", "/")); ok {
			out[name] = v
		}
	}
	for name, v := range answers {
		out[name] = v
	}
	return out
}
