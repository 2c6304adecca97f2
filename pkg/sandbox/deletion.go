package sandbox

import (
	"database/sql"
)

// delete removes a resource and what its service deletes with it, unless something that AWS would not let down
// still names one of them.
func (o *operation) delete() error {
	row, found, err := o.target()
	if err != nil {
		return err
	}
	if !found {
		return o.recordFailure(o.identifier, fail(failureNotFound, "Resource of type '%s' with identifier '%s' was not found.", o.typeName, o.identifier))
	}
	if by := protectedBy(row.model); by != "" {
		return o.recordFailure(o.identifier, fail(failureInvalidRequest, "the %s is currently protected against deletion by its %s", o.typeName, by))
	}
	d := &deletion{o: o, going: map[int64]resourceRow{row.id: row}, order: []int64{row.id}}
	if err := d.spread(); err != nil {
		return err
	}
	if h, held := d.holder(); held {
		return o.recordFailure(o.identifier, fail(failureConflict, "%s is in use: %s of a %s refers to it", o.typeName, h.path, h.typeName))
	}
	for _, id := range d.order[1:] {
		if child := d.going[id]; child.busy(o.now) {
			return o.recordFailure(o.identifier, fail(failureConflict, "%s is in use: another operation is in progress on its %s", o.typeName, child.typeName))
		}
	}
	due := o.due(opDelete, 1)
	for _, id := range d.order {
		if err := o.remove(row.id, id, millis(due)); err != nil {
			return err
		}
	}
	return o.record(o.identifier, statusSuccess, failure{}, nil, row.id, due)
}

// protections are the properties by which services keep a resource from being deleted, for example
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/WorkingWithTables.Basics.html#WorkingWithTables.Basics.DeletionProtection
// (DynamoDB, RDS, Cognito user pools) and DisableApiTermination of EC2 instances.
var protections = [...]string{"DeletionProtectionEnabled", "DeletionProtection", "DisableApiTermination"}

// protectedBy names the property that protects a resource from being deleted, "" when none does. Cognito writes
// ACTIVE where the others write true.
func protectedBy(model map[string]any) string {
	for _, name := range protections {
		if v := model[name]; v == true || v == "ACTIVE" {
			return name
		}
	}
	return ""
}

// remove takes one resource away, now or when the operation is over.
func (o *operation) remove(owner, id, due int64) error {
	if due <= millis(o.now) {
		return drop(o.tx, id)
	}
	if err := o.tx.exec(`UPDATE resources SET gone = ? WHERE id = ?`, due, id); err != nil || id == owner {
		return err
	}
	return o.tx.exec(`INSERT OR REPLACE INTO cascades (resource, owner) VALUES (?, ?)`, id, owner)
}

// restore takes back a deletion that is not over, with all that was going along.
func restore(tx *tx, id int64) error {
	if err := tx.exec(`UPDATE resources SET gone = NULL WHERE id = ? OR id IN (SELECT resource FROM cascades WHERE owner = ?)`, id, id); err != nil {
		return err
	}
	return tx.exec(`DELETE FROM cascades WHERE owner = ?`, id)
}

// deletion finds out what goes with a resource and what keeps it.
type deletion struct {
	o     *operation
	going map[int64]resourceRow
	order []int64 // of going: the resource itself first, owners before what they own
	held  []dependent
}

// spread follows the references to everything that goes.
func (d *deletion) spread() error {
	rel := d.o.s.relations
	for i := 0; i < len(d.order); i++ {
		row := d.going[d.order[i]]
		t, _ := d.o.s.types(row.typeName)
		found, err := row.dependents(d.o.tx, t)
		if err != nil {
			return err
		}
		for _, dep := range found {
			if _, going := d.going[dep.id]; going {
				continue
			}
			kind := tie{row.typeName, dep.typeName, dep.path}
			switch {
			case rel.owns[kind]:
				child, err := byID(d.o.tx, dep.id)
				if err != nil {
					return err
				}
				shared, err := d.shared(child, dep.path, &row)
				if err != nil {
					return err
				}
				if !shared {
					d.going[child.id] = child
					d.order = append(d.order, child.id)
				}
			case rel.outlives[kind] || rel.outlives[tie{d.o.typeName, dep.typeName, dep.path}]:
			case rel.holds(kind, dep.required):
				d.held = append(d.held, dep)
			}
		}
	}
	return nil
}

// holder is the first resource that keeps the deletion from happening: one that does not go itself.
func (d *deletion) holder() (dependent, bool) {
	for _, h := range d.held {
		if _, going := d.going[h.id]; !going {
			return h, true
		}
	}
	return dependent{}, false
}

// shared reports whether a resource that an owner is to take along lists another owner, too: the policy of two
// queues is still the policy of one when the other is deleted. What the sandbox has never made counts as there.
func (d *deletion) shared(child resourceRow, path string, owner *resourceRow) (bool, error) {
	v, _ := get(child.model, path)
	list, _ := v.([]any)
	for _, item := range list {
		value, ok := item.(string)
		if !ok {
			continue
		}
		var resource sql.NullInt64
		known, err := d.o.tx.row(`SELECT resource FROM identities WHERE value = ?`, []any{value}, &resource)
		if err != nil {
			return false, err
		}
		if known && !resource.Valid {
			continue
		}
		id := resource.Int64
		if !known {
			if _, err := d.o.tx.row(`SELECT id FROM resources WHERE type = ? AND account = ? AND region = ? AND identifier = ?`,
				[]any{owner.typeName, owner.account, owner.region, value}, &id); err != nil {
				return false, err
			}
		}
		if _, going := d.going[id]; !going {
			return true, nil
		}
	}
	return false, nil
}
