package sandbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

// create makes a resource, or records why the handler would have failed.
func (o *operation) create() error {
	for attempt := 1; ; attempt++ {
		row, err := o.make(o.desired, nil, nil)
		if err != nil {
			return err
		}
		other, occupied, err := find(o.tx, o.caller, o.typeName, row.identifier)
		if s := o.s.shapes[o.typeName]; err == nil && !occupied && s != nil && s.own != nil && s.own.id != "" {
			// Nor may its service call another one the same.
			other, occupied, err = findVia(o.tx, routeDirect, s, o.caller, o.typeName, row.direct, []map[string]any{row.model})
		}
		if err != nil {
			return err
		}
		if occupied && attempt < attemptsForUniqueNames && o.generated(row) {
			continue
		}
		if occupied && other.busy(o.now) {
			return refuse(codeConcurrent, "Another operation is in progress on the %s", o.typeName)
		}
		if occupied {
			return o.recordFailure("", fail(failureAlreadyExists, "Resource of type '%s' with identifier '%s' already exists.", o.typeName, row.calledBy(o.route)))
		}
		if row.identifier == "" || strings.Trim(row.identifier, "|") == "" {
			return o.recordFailure("", fail(failureInvalidRequest, "%s can't be identified by its properties", o.typeName))
		}
		if ref, missing, err := o.dangling(row.model, nil); err != nil {
			return err
		} else if missing {
			return o.recordFailure("", notFound(o.t, ref))
		}
		due := o.due(opCreate, 1)
		row.born = millis(due)
		taken, err := row.insert(o.tx, o.t, o.s.shapes[o.typeName], o.s.relations)
		if err != nil {
			return err
		}
		if taken != "" {
			if attempt < attemptsForUniqueNames && contains(row.filled, taken) {
				continue
			}
			return o.recordFailure("", fail(failureAlreadyExists, "%s: another resource has this %s", o.typeName, taken))
		}
		return o.record(row.calledBy(o.route), statusSuccess, failure{}, row.model, row.id, due)
	}
}

// notFound is the handler's failure for a reference to nothing. EC2 has error codes of its own for it, which its
// handlers map to NotFound; the other services call the request invalid.
func notFound(t *schema.Type, ref reference) failure {
	code := failureInvalidRequest
	if service(t.Name) == "EC2" {
		code = failureNotFound
	}
	return fail(code, "what %s of %s refers to does not exist", ref.path, t.Name)
}

// generated reports whether any part of the identifier was the sandbox's choice.
func (o *operation) generated(row *resourceRow) bool {
	for _, p := range o.t.PrimaryIdentifier {
		if contains(row.filled, p) {
			return true
		}
	}
	return len(o.t.PrimaryIdentifier) == 0
}

// make completes a model. Values that the sandbox wrote into the previous model (filled) are kept.
func (o *operation) make(desired, previous map[string]any, filled []string) (*resourceRow, error) {
	model := clone(desired).(map[string]any)
	shape := o.s.shapes[o.typeName]
	var kept []string
	for _, path := range filled {
		if r, ok := shape.find(path); ok && !r.applies(model) {
			remove(model, strings.Split(path, "/"))
			continue
		}
		if v, ok := get(previous, path); ok {
			if _, given := get(model, path); !given {
				set(model, path, clone(v))
			}
			kept = append(kept, path)
		}
	}
	row := &resourceRow{account: o.caller.Account, region: o.caller.scopeOf(o.typeName), typeName: o.typeName, route: o.route, model: model}
	var err error
	o.s.draw(func(m *maker) {
		m.caller, m.t, m.shape, m.model = o.caller, o.t, shape, model
		m.now, m.label = o.now, o.label
		m.sequence = o.sequence
		row.filled, err = m.fill()
		if len(o.t.PrimaryIdentifier) == 0 && getString(model, o.t.RefProperty) == "" {
			row.identifier = strings.ToLower(word(o.typeName)) + "-" + m.random(lowerDigits, 12)
		} else {
			row.identifier = identifierOf(o.t, model)
		}
		m.call(row)
		err = errors.Join(err, m.err)
	})
	if err != nil {
		return nil, fmt.Errorf("making up a %s: %w", o.typeName, err)
	}
	row.filled = append(kept, row.filled...)
	return row, nil
}

// sequence counts in the database.
func (o *operation) sequence(key string) (int, error) {
	if err := o.tx.exec(`INSERT INTO sequences (name, last) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET last = last + 1`, key); err != nil {
		return 0, err
	}
	var n int
	_, err := o.tx.row(`SELECT last FROM sequences WHERE name = ?`, []any{key}, &n)
	return n, err
}

// target finds what an update or delete is about. Cloud Control locks a resource while it works on it.
func (o *operation) target() (resourceRow, bool, error) {
	row, found, err := findVia(o.tx, o.route, o.s.shapes[o.typeName], o.caller, o.typeName, o.identifier, []map[string]any{o.known, o.desired})
	if err == nil && found && row.busy(o.now) {
		err = refuse(codeConcurrent, "Another operation is in progress on the %s", o.typeName)
	}
	return row, found, err
}

// update changes a resource in place.
func (o *operation) update() error {
	row, found, err := o.target()
	if err != nil {
		return err
	}
	if !found {
		return refuse(codeNotFound, "Resource of type '%s' with identifier '%s' was not found.", o.typeName, o.identifier)
	}
	before := public(o.t, row.model)
	desired := o.desired
	switch o.route {
	case routeCloudControl:
		if !o.t.Updatable {
			return refuse(codeUnsupported, "Resource type %s does not support UPDATE action", o.typeName)
		}
		after, err := applyPatch(before, o.patch)
		if err != nil {
			return refuse(codeValidation, "Invalid patch document: it can't be applied to the resource")
		}
		if changed := changedPaths(o.t.ReadOnly, before, after); len(changed) > 0 {
			return refuse(codeValidation, "Invalid patch update: readOnlyProperties [%s] cannot be updated", pointers(changed))
		}
		desired = after
	default:
		before = row.model
		desired = withoutNulls(desired).(map[string]any)
		for _, path := range row.filled {
			// What AWS chose stays as it is unless the caller chooses otherwise.
			if v, ok := get(row.model, path); ok && !present(desired, path) {
				set(desired, path, clone(v))
			}
		}
		for _, path := range o.createOnly() {
			// So does what the caller can't change and has not said: the name that it has made for a resource whose template has none.
			if v, ok := get(row.model, path); ok && !present(desired, path) && !present(o.known, path) {
				set(desired, path, clone(v))
			}
		}
	}
	if changed := changedPaths(o.createOnly(), before, desired); len(changed) > 0 {
		return refuse(codeNotUpdatable, "Invalid patch update: createOnlyProperties [%s] cannot be updated", pointers(changed))
	}
	if err := checkModel(o.t, o.given(desired, row.filled)); err != nil {
		return err
	}
	next, err := o.make(desired, row.model, row.filled)
	if err != nil {
		return err
	}
	if len(o.t.PrimaryIdentifier) > 0 && next.identifier != row.identifier {
		return o.recordFailure(o.identifier, fail(failureNotUpdatable, "the identifier of a %s can't be changed", o.typeName))
	}
	if ref, missing, err := o.dangling(next.model, row.model); err != nil {
		return err
	} else if missing {
		return o.recordFailure(o.identifier, notFound(o.t, ref))
	}
	due := o.due(opUpdate, 1)
	if err := o.tx.exec(`UPDATE resources SET model = ?, prior = ?, filled = ?, changed = ? WHERE id = ?`,
		encode(next.model), encode(row.model), encode(next.filled), millis(due), row.id); err != nil {
		return err
	}
	next.id, next.identifier = row.id, row.identifier
	if err := next.reindex(o.tx, o.t, o.s.relations); err != nil {
		return err
	}
	return o.record(o.identifier, statusSuccess, failure{}, next.model, row.id, due)
}

// reindex replaces the resource's references and adds identities.
func (r *resourceRow) reindex(tx *tx, t *schema.Type, rel relations) error {
	if err := tx.exec(`DELETE FROM refs WHERE resource = ?`, r.id); err != nil {
		return err
	}
	return r.index(tx, t, rel)
}

// createOnly lists the paths that can't change: the registry's, and those that the service specification adds.
func (o *operation) createOnly() []string {
	out := append([]string{}, o.t.CreateOnly...)
	for _, path := range sortedKeys(o.t.Replacements) {
		if o.t.Replacements[path] == schema.ReplaceAlways && !contains(out, path) {
			out = append(out, path)
		}
	}
	return out
}

// given is the part of a model that a caller may write: without read-only properties and without attributes that
// are no properties.
func (o *operation) given(model map[string]any, filled []string) map[string]any {
	m := withoutReadOnly(o.t, model)
	for _, path := range filled {
		if keys := strings.Split(path, "/"); !settable(o.t, keys) {
			remove(m, keys)
		}
	}
	restoreRequired(o.t, &o.t.Definition, model, m)
	return m
}

// restoreRequired puts back required objects of before that after lost because AWS sets all that is in them.
func restoreRequired(t *schema.Type, def *schema.Definition, before, after map[string]any) {
	for _, name := range def.Required {
		if _, object := before[name].(map[string]any); object && after[name] == nil {
			after[name] = map[string]any{}
		}
	}
	for name, value := range after {
		p := def.Properties[name]
		inner, isObject := value.(map[string]any)
		was, wasObject := before[name].(map[string]any)
		if p != nil && isObject && wasObject && t.Definitions[p.Ref] != nil {
			restoreRequired(t, t.Definitions[p.Ref], was, inner)
		}
	}
}

// settable reports whether a path is a property that a template may set.
func settable(t *schema.Type, path []string) bool {
	def := &t.Definition
	for i, name := range path {
		if def == nil {
			return true // free JSON
		}
		p := def.Properties[name]
		if p == nil {
			return def.Open
		}
		if i == len(path)-1 {
			return true
		}
		def = t.Definitions[p.Ref]
	}
	return true
}

// cancel stops an operation that is not over: it then has had no effect.
func (s *Sandbox) cancel(ctx context.Context, caller Caller, token string) (ProgressEvent, error) {
	var event ProgressEvent
	err := s.db.update(ctx, func(tx *tx) error {
		var found []requestRow
		err := tx.rows(`SELECT `+requestColumns+` FROM requests WHERE token = ? AND account = ? AND region = ? AND route = ?`,
			[]any{token, caller.Account, caller.Region, routeCloudControl}, func(rows *sql.Rows) error {
				r, err := scanRequest(rows.Scan)
				found = append(found, r)
				return err
			})
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return refuse(codeRequestNotFound, "Request with token %s was not found", token)
		}
		r := found[0]
		now := s.now()
		if r.over(now) {
			return refuse(codeConcurrentModify, "Only requests that are pending or in progress can be cancelled")
		}
		if err := s.undo(tx, r); err != nil {
			return err
		}
		r.status, r.failure, r.model = statusCancelled, failure{}, ""
		if err := tx.exec(`UPDATE requests SET status = ?, code = '', message = '', model = '' WHERE token = ?`, r.status, token); err != nil {
			return err
		}
		event = r.event(now, false)
		return nil
	})
	return event, err
}

// undo takes back what an unfinished operation was going to do.
func (s *Sandbox) undo(tx *tx, r requestRow) error {
	if r.resource == 0 {
		return nil
	}
	switch r.operation {
	case opCreate:
		return drop(tx, r.resource)
	case opDelete:
		return restore(tx, r.resource)
	}
	row, found, err := find(tx, r.caller, r.typeName, r.identifier)
	if err != nil || !found || row.prior == nil {
		return err
	}
	row.model, row.prior = row.prior, nil
	if err := tx.exec(`UPDATE resources SET model = ?, prior = '', changed = 0 WHERE id = ?`, encode(row.model), row.id); err != nil {
		return err
	}
	t, _ := s.types(r.typeName)
	return row.reindex(tx, t, s.relations)
}
