package sandbox

import (
	"context"
	"database/sql"
	"fmt"
)

// Snapshot is a final snapshot: what a resource was like when it was deleted.
type Snapshot struct {
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	Identifier string         `json:"identifier"`
	Account    string         `json:"account"`
	Region     string         `json:"region"`
	Properties map[string]any `json:"properties"`
}

// Snapshots lists the final snapshots that have been taken, in order.
func (s *Sandbox) Snapshots(ctx context.Context) ([]Snapshot, error) {
	out := []Snapshot{}
	rows, err := s.db.read.QueryContext(ctx, `SELECT name, type, identifier, account, region, model FROM snapshots ORDER BY account, region, name`)
	if err != nil {
		return nil, fmt.Errorf("listing the sandbox's snapshots: %w", err)
	}
	err = eachRow(rows, func(rows *sql.Rows) error {
		var snap Snapshot
		var model string
		if err := rows.Scan(&snap.Name, &snap.Type, &snap.Identifier, &snap.Account, &snap.Region, &model); err != nil {
			return err
		}
		var err error
		snap.Properties, err = decodeObject(model)
		out = append(out, snap)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing the sandbox's snapshots: %w", err)
	}
	return out, nil
}

// snapshot keeps what a resource is like under a name. The same again changes nothing; a name that is taken by the
// snapshot of another resource is refused.
func (s *Sandbox) snapshot(ctx context.Context, caller Caller, in directInput) error {
	if in.Name == "" {
		return refuse(codeValidation, "a snapshot needs a name")
	}
	t, ok := s.types(in.Type)
	if !ok {
		return refuse(codeTypeNotFound, "The type '%s' cannot be found.", in.Type)
	}
	return s.db.update(ctx, func(tx *tx) error {
		var typeName, identifier string
		region := caller.scopeOf(in.Type)
		taken, err := tx.row(`SELECT type, identifier FROM snapshots WHERE account = ? AND region = ? AND name = ?`,
			[]any{caller.Account, region, in.Name}, &typeName, &identifier)
		switch {
		case err != nil:
			return err
		case taken && typeName == in.Type && identifier == in.Identifier:
			return nil
		case taken:
			return refuse(codeValidation, "there is another snapshot of the name %s", in.Name)
		}
		row, found, err := find(tx, caller, in.Type, in.Identifier)
		if err == nil && !found {
			row, found, err = findVia(tx, routeDirect, s.shapes[in.Type], caller, in.Type, in.Identifier, []map[string]any{in.Known})
		}
		if err != nil {
			return err
		}
		if model, there := row.visible(s.now()); found && there {
			return tx.exec(`INSERT INTO snapshots (account, region, name, type, identifier, model) VALUES (?, ?, ?, ?, ?, ?)`,
				caller.Account, region, in.Name, in.Type, in.Identifier, encode(public(t, model)))
		}
		return refuse(codeNotFound, "Resource of type '%s' with identifier '%s' was not found.", in.Type, in.Identifier)
	})
}
