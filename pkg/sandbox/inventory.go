package sandbox

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"strings"
)

// Resource is one live resource. Region is GlobalRegion for global services. Identifier and Properties are what the API
// answers through which it was made: without write-only properties.
type Resource struct {
	Account    string         `json:"account"`
	Region     string         `json:"region"`
	Type       string         `json:"type"`
	Identifier string         `json:"identifier"`
	Properties map[string]any `json:"properties"`

	// primary and model are what Cloud Control answers.
	primary string
	model   map[string]any
}

// Filter selects resources; empty members select all.
type Filter struct {
	Account    string
	Region     string
	Type       string
	Identifier string
}

// List returns the live resources that match, by account, region, type and identifier.
func (s *Sandbox) List(ctx context.Context, f Filter) ([]Resource, error) {
	where, args := []string{"1"}, []any{}
	for _, c := range []struct{ condition, value string }{
		{"account = ?", f.Account}, {"region = ?", f.Region}, {"type = ?", f.Type},
		{"CASE route WHEN 'sdk' THEN direct ELSE identifier END = ?", f.Identifier},
	} {
		if c.value != "" {
			where = append(where, c.condition)
			args = append(args, c.value)
		}
	}
	rows, err := s.db.read.QueryContext(ctx, `SELECT `+resourceColumns+` FROM resources WHERE `+strings.Join(where, " AND ")+` ORDER BY account, region, type, identifier`, args...)
	if err != nil {
		return nil, fmt.Errorf("listing the sandbox: %w", err)
	}
	out := []Resource{}
	now := s.now()
	err = eachRow(rows, func(rows *sql.Rows) error {
		r, err := scanResource(rows.Scan)
		if err != nil {
			return err
		}
		if model, ok := r.visible(now); ok {
			if t, ok := s.types(r.typeName); ok {
				model = public(t, model)
			}
			own := model
			if r.route == routeDirect && len(r.answers) > 0 {
				own = maps.Clone(model)
				maps.Copy(own, r.answers)
			}
			out = append(out, Resource{r.account, r.region, r.typeName, r.calledBy(r.route), own, r.identifier, model})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the sandbox: %w", err)
	}
	return out, nil
}

// Show returns one live resource. A *Refusal with the code ResourceNotFoundException when there is none.
func (s *Sandbox) Show(ctx context.Context, caller Caller, typeName, identifier string) (Resource, error) {
	found, err := s.List(ctx, Filter{caller.Account, caller.scopeOf(typeName), typeName, identifier})
	if err != nil {
		return Resource{}, err
	}
	if len(found) == 0 {
		return Resource{}, refuse(codeNotFound, "Resource of type '%s' with identifier '%s' was not found.", typeName, identifier)
	}
	return found[0], nil
}

// Reset empties the sandbox: resources, requests, everything it remembers. Other processes may keep it open.
func (s *Sandbox) Reset(ctx context.Context) error {
	return s.db.update(ctx, func(tx *tx) error {
		for _, table := range []string{"resources", "claims", "identities", "refs", "cascades", "sequences", "requests", "responses", "snapshots"} {
			if err := tx.exec("DELETE FROM " + table); err != nil {
				return fmt.Errorf("resetting the sandbox: %w", err)
			}
		}
		return nil
	})
}
