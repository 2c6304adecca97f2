package sandbox

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

// resourceRow is one resource as stored: the whole model, with write-only properties.
type resourceRow struct {
	id         int64
	account    string
	region     string
	typeName   string
	identifier string
	route      route
	// direct is the id in the service's own API; answers are the attributes that only that API gives.
	direct  string
	answers map[string]any
	model   map[string]any
	// prior is what readers see until changed: the model before the update in flight.
	prior   map[string]any
	filled  []string // paths that the sandbox wrote
	born    int64
	changed int64
	gone    sql.NullInt64
}

const resourceColumns = `id, account, region, type, identifier, route, direct, answers, model, prior, filled, born, changed, gone`

// scanResource reads a row of resourceColumns.
func scanResource(scan func(...any) error) (resourceRow, error) {
	var r resourceRow
	var answers, model, prior, filled string
	if err := scan(&r.id, &r.account, &r.region, &r.typeName, &r.identifier, &r.route, &r.direct, &answers, &model, &prior, &filled, &r.born, &r.changed, &r.gone); err != nil {
		return r, err
	}
	var err error
	if r.model, err = decodeObject(model); err != nil {
		return r, fmt.Errorf("reading the model of %s in the sandbox: %w", r.typeName, err)
	}
	if answers != "" {
		if r.answers, err = decodeObject(answers); err != nil {
			return r, fmt.Errorf("reading the attributes of %s in the sandbox: %w", r.typeName, err)
		}
	}
	if prior != "" {
		if r.prior, err = decodeObject(prior); err != nil {
			return r, fmt.Errorf("reading the model of %s in the sandbox: %w", r.typeName, err)
		}
	}
	if filled != "" {
		if err := json.Unmarshal([]byte(filled), &r.filled); err != nil {
			return r, fmt.Errorf("reading the model of %s in the sandbox: %w", r.typeName, err)
		}
	}
	return r, nil
}

// visible is the model that a reader sees, false when there is no resource for it yet or any more.
func (r resourceRow) visible(now time.Time) (map[string]any, bool) {
	n := millis(now)
	if r.born > n || r.gone.Valid && r.gone.Int64 <= n {
		return nil, false
	}
	if r.changed > n && r.prior != nil {
		return r.prior, true
	}
	return r.model, true
}

// busy reports whether an operation on the resource is not over yet.
func (r resourceRow) busy(now time.Time) bool {
	n := millis(now)
	return r.born > n || r.changed > n || r.gone.Valid && r.gone.Int64 > n
}

// byID reads a resource by its row.
func byID(tx *tx, id int64) (resourceRow, error) {
	var r resourceRow
	err := tx.rows(`SELECT `+resourceColumns+` FROM resources WHERE id = ?`, []any{id}, func(rows *sql.Rows) (err error) {
		r, err = scanResource(rows.Scan)
		return err
	})
	return r, err
}

// find reads a resource by its identifier in Cloud Control.
func find(tx *tx, caller Caller, typeName, identifier string) (resourceRow, bool, error) {
	return findVia(tx, routeCloudControl, nil, caller, typeName, identifier, nil)
}

// findVia reads a resource by its identifier in the API of a route; known are properties that the caller knows it by.
func findVia(tx *tx, via route, s *shape, caller Caller, typeName, identifier string, known []map[string]any) (resourceRow, bool, error) {
	statement, args := query(via, caller, typeName, identifier)
	var all []resourceRow
	if err := tx.rows(statement, args, scanAll(&all)); err != nil {
		return resourceRow{}, false, err
	}
	r, found := meant(s, all, known)
	return r, found, nil
}

// insert stores a new resource with its claims, identities and references. claimed names the property whose name
// another resource holds, "" when there is none; nothing is then stored.
func (r *resourceRow) insert(tx *tx, t *schema.Type, s *shape, rel relations) (claimed string, err error) {
	spaces := claimsOf(r, s)
	for _, c := range spaces {
		taken, err := tx.row(`SELECT 1 FROM claims WHERE space = ? AND name = ?`, []any{c.space, c.name}, new(int))
		if err != nil {
			return "", err
		}
		if taken {
			return c.path, nil
		}
	}
	answers := ""
	if r.answers != nil {
		answers = encode(r.answers)
	}
	r.id, err = tx.insert(`INSERT INTO resources (account, region, type, identifier, route, direct, answers, model, filled, born) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		r.account, r.region, r.typeName, r.identifier, r.route, r.direct, answers, encode(r.model), encode(r.filled), r.born)
	if err != nil {
		return "", err
	}
	for _, c := range spaces {
		if err := tx.exec(`INSERT INTO claims (space, name, resource) VALUES (?, ?, ?)`, c.space, c.name, r.id); err != nil {
			return "", err
		}
	}
	return "", r.index(tx, t, rel)
}

// index writes the resource's identities and references anew.
func (r *resourceRow) index(tx *tx, t *schema.Type, rel relations) error {
	for _, v := range identities(r) {
		if err := tx.exec(`INSERT INTO identities (value, type, resource) VALUES (?, ?, ?)
			ON CONFLICT (value) DO UPDATE SET resource = excluded.resource, type = excluded.type WHERE identities.resource IS NULL`, v, r.typeName, r.id); err != nil {
			return err
		}
	}
	for _, ref := range rel.references(t, r.model) {
		if err := tx.exec(`INSERT OR REPLACE INTO refs (value, resource, path, relation, required) VALUES (?, ?, ?, ?, ?)`,
			ref.value, r.id, ref.path, ref.relation, ref.required); err != nil {
			return err
		}
	}
	return nil
}

// drop deletes resources. What identified them stays known as gone.
func drop(tx *tx, id int64) error {
	for _, q := range []string{
		`DELETE FROM resources WHERE id = ?`,
		`DELETE FROM claims WHERE resource = ?`,
		`DELETE FROM refs WHERE resource = ?`,
		`DELETE FROM cascades WHERE resource = ?`,
		`UPDATE identities SET resource = NULL WHERE resource = ?`,
	} {
		if err := tx.exec(q, id); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes the resources whose deletion is over, and requests that nobody can ask about any more.
func sweep(tx *tx, now time.Time) error {
	var ids []int64
	err := tx.rows(`SELECT id FROM resources WHERE gone IS NOT NULL AND gone <= ?`, []any{millis(now)}, func(rows *sql.Rows) error {
		var id int64
		ids = append(ids, 0)
		err := rows.Scan(&id)
		ids[len(ids)-1] = id
		return err
	})
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := drop(tx, id); err != nil {
			return err
		}
	}
	return tx.exec(`DELETE FROM requests WHERE started < ?`, millis(now.Add(-requestLife)))
}

// claimed is one name that a resource occupies.
type claimed struct{ space, name, path string }

func claimsOf(r *resourceRow, s *shape) []claimed {
	if s == nil {
		return nil
	}
	var out []claimed
	for _, c := range s.claims {
		name := getString(r.model, c.path)
		if name == "" {
			continue
		}
		space := r.typeName
		if !c.global {
			space += " " + r.account + " " + r.region
		}
		out = append(out, claimed{space, name, c.path})
	}
	return out
}

// identities are the values that can only mean this resource: those that AWS chose. A name that a caller chose may
// look like anything, even like an id.
func identities(r *resourceRow) []string {
	var out []string
	add := func(s string) {
		if unmistakable(s) && !contains(out, s) {
			out = append(out, s)
		}
	}
	for _, path := range r.filled {
		v := getString(r.model, path)
		add(v)
		// A log group's ARN is also written without the final ":*".
		if base, ok := strings.CutSuffix(v, ":*"); ok {
			add(base)
		}
	}
	return out
}

// dependent is a live resource that names another one.
type dependent struct {
	id             int64
	typeName, path string
	required       bool
}

// dependents lists the live resources that name this one, once for each property.
func (r *resourceRow) dependents(tx *tx, t *schema.Type) ([]dependent, error) {
	var out []dependent
	collect := func(query string, args ...any) error {
		return tx.rows(query, args, func(rows *sql.Rows) error {
			var d dependent
			err := rows.Scan(&d.id, &d.typeName, &d.path, &d.required)
			if err == nil && !slices.Contains(out, d) {
				out = append(out, d)
			}
			return err
		})
	}
	own, err := r.identityValues(tx)
	if err != nil {
		return nil, err
	}
	for _, v := range own {
		if err := collect(`SELECT o.id, o.type, f.path, f.required FROM refs f JOIN resources o ON o.id = f.resource WHERE f.value = ? AND f.resource <> ?`, v, r.id); err != nil {
			return nil, err
		}
	}
	// A plain name counts only where the schema says that it names this type, in the same account and region.
	for _, v := range namesOf(t, r) {
		if err := collect(`SELECT o.id, o.type, f.path, f.required FROM refs f JOIN resources o ON o.id = f.resource
			WHERE f.value = ? AND f.resource <> ? AND f.relation = ? AND o.account = ? AND (? = '`+GlobalRegion+`' OR o.region = ?)`,
			v, r.id, r.typeName, r.account, r.region, r.region); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// identityValues are the stored values that can only mean this resource.
func (r *resourceRow) identityValues(tx *tx) ([]string, error) {
	var out []string
	err := tx.rows(`SELECT value FROM identities WHERE resource = ?`, []any{r.id}, func(rows *sql.Rows) error {
		var v string
		err := rows.Scan(&v)
		out = append(out, v)
		return err
	})
	return out, err
}

// namesOf are the values by which a property of another resource may name this one: the identifier, or the parts
// of it that only this type gives.
func namesOf(t *schema.Type, r *resourceRow) []string {
	out := []string{r.identifier}
	if len(t.PrimaryIdentifier) > 1 {
		out = nil
		for _, p := range t.PrimaryIdentifier {
			if t.IsReadOnly(strings.Split(p, "/")) {
				out = append(out, getString(r.model, p))
			}
		}
	}
	kind := word(r.typeName)
	for _, p := range []string{t.RefProperty, kind + "Name", kind + "Id", kind + "Identifier", "Id", "Name"} {
		if v := getString(r.model, p); p != "" && v != "" && !contains(out, v) && (len(t.PrimaryIdentifier) < 2 || t.IsReadOnly([]string{p})) {
			out = append(out, v)
		}
	}
	return out
}

// dangling returns the first reference of a model to a resource that this sandbox made and that is not there: gone,
// or still being created. What the sandbox never made is taken for infrastructure that exists outside of it, and
// what the resource referred to before (previous, nil for a new one) is not looked at again.
func (o *operation) dangling(model, previous map[string]any) (reference, bool, error) {
	before := o.s.relations.references(o.t, previous)
	for _, ref := range o.s.relations.references(o.t, model) {
		if !o.s.relations.mustExist(o.typeName, ref) || slices.Contains(before, ref) {
			continue
		}
		var resource sql.NullInt64
		known, err := o.tx.row(`SELECT resource FROM identities WHERE value = ?`, []any{ref.value}, &resource)
		if err != nil {
			return ref, false, err
		}
		if !known {
			continue
		}
		there, err := o.tx.row(`SELECT 1 FROM resources WHERE id = ? AND born <= ?`, []any{resource.Int64, millis(o.now)}, new(int))
		if err != nil {
			return ref, false, err
		}
		if !there {
			return ref, true, nil
		}
	}
	return reference{}, false, nil
}
