package sandbox

import (
	"database/sql"
	"errors"
	"time"
)

// ProgressEvent is what is known about an operation; the members are those of Cloud Control
// (https://docs.aws.amazon.com/cloudcontrolapi/latest/APIReference/API_ProgressEvent.html). Times are seconds since 1970.
type ProgressEvent struct {
	TypeName        string  `json:"TypeName"`
	Identifier      string  `json:"Identifier,omitempty"`
	RequestToken    string  `json:"RequestToken"`
	Operation       string  `json:"Operation"`
	OperationStatus string  `json:"OperationStatus"`
	EventTime       float64 `json:"EventTime"`
	// ResourceModel is the resource as JSON, without write-only properties; after a successful create or update.
	ResourceModel string `json:"ResourceModel,omitempty"`
	StatusMessage string `json:"StatusMessage,omitempty"`
	ErrorCode     string `json:"ErrorCode,omitempty"`
	// RetryAfter is when to ask next, while the operation runs.
	RetryAfter float64 `json:"RetryAfter,omitempty"`
}

// requestRow is one operation as stored: its outcome, and when that becomes visible.
type requestRow struct {
	token       string
	caller      Caller
	route       route
	clientToken string
	digest      string
	operation   string
	typeName    string
	identifier  string
	status      string
	failure     failure
	model       string
	resource    int64
	started     int64
	due         int64
}

const requestColumns = `token, account, region, route, coalesce(client_token, ''), digest, operation, type, identifier, status, code, message, model, coalesce(resource, 0), started, due`

func scanRequest(scan func(...any) error) (requestRow, error) {
	var r requestRow
	err := scan(&r.token, &r.caller.Account, &r.caller.Region, &r.route, &r.clientToken, &r.digest, &r.operation, &r.typeName, &r.identifier,
		&r.status, &r.failure.code, &r.failure.message, &r.model, &r.resource, &r.started, &r.due)
	return r, err
}

func (r *requestRow) insert(tx *tx) error {
	var client any
	if r.clientToken != "" {
		client = r.clientToken
	}
	return tx.exec(`INSERT INTO requests (token, account, region, route, client_token, digest, operation, type, identifier, status, code, message, model, resource, started, due)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		r.token, r.caller.Account, r.caller.Region, r.route, client, r.digest, r.operation, r.typeName, r.identifier, r.status, r.failure.code,
		r.failure.message, r.model, r.resource, r.started, r.due)
}

// over reports whether the outcome is visible.
func (r requestRow) over(now time.Time) bool {
	return r.status == statusCancelled || r.due <= millis(now)
}

// event is the operation as a client sees it. The answer to the mutation itself (first) is always in progress:
// operations are asynchronous even where they take no time.
func (r requestRow) event(now time.Time, first bool) ProgressEvent {
	e := ProgressEvent{
		TypeName: r.typeName, Identifier: r.identifier, RequestToken: r.token, Operation: r.operation, EventTime: seconds(r.started),
		OperationStatus: r.status, ResourceModel: r.model, StatusMessage: r.failure.message, ErrorCode: r.failure.code,
	}
	if first || !r.over(now) {
		e.OperationStatus, e.ResourceModel, e.StatusMessage, e.ErrorCode = statusInProgress, "", "", failureNone
		if first && r.operation == opCreate {
			e.Identifier = "" // no handler has run yet
		}
		if r.status == statusFailed && r.operation == opCreate {
			e.Identifier = ""
		}
		left := min(max(time.Duration(r.due-millis(now))*time.Millisecond, shortestPollHint), longestPollHint)
		if r.over(now) {
			left = 0
		}
		e.RetryAfter = seconds(millis(now.Add(left)))
	}
	return e
}

func seconds(millis int64) float64 { return float64(millis) / 1000 }

// replay finds the earlier request with the same client token. A token is forgotten after 36 hours.
func replay(tx *tx, m mutation, digest string, now time.Time) (requestRow, bool, error) {
	if m.clientToken == "" {
		return requestRow{}, false, nil
	}
	if err := tx.exec(`UPDATE requests SET client_token = NULL WHERE account = ? AND region = ? AND client_token = ? AND started <= ?`,
		m.caller.Account, m.caller.Region, m.clientToken, millis(now.Add(-tokenLife))); err != nil {
		return requestRow{}, false, err
	}
	var found []requestRow
	err := tx.rows(`SELECT `+requestColumns+` FROM requests WHERE account = ? AND region = ? AND client_token = ?`,
		[]any{m.caller.Account, m.caller.Region, m.clientToken}, func(rows *sql.Rows) error {
			r, err := scanRequest(rows.Scan)
			found = append(found, r)
			return err
		})
	if err != nil || len(found) == 0 {
		return requestRow{}, false, err
	}
	if found[0].digest != digest {
		return requestRow{}, false, refuse(codeTokenConflict, "client token has already been used in another resource request")
	}
	return found[0], true, nil
}

// status reads an operation by its request token.
func (s *Sandbox) status(caller Caller, r route, token string) (ProgressEvent, error) {
	row := s.db.read.QueryRow(`SELECT `+requestColumns+` FROM requests WHERE token = ? AND account = ? AND region = ? AND route = ?`,
		token, caller.Account, caller.Region, r)
	q, err := scanRequest(row.Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return ProgressEvent{}, refuse(codeRequestNotFound, "Request with token %s was not found", token)
	}
	if err != nil {
		return ProgressEvent{}, err
	}
	return q.event(s.now(), false), nil
}

// requestFilter selects operations by kind and status; an empty list selects all.
type requestFilter struct{ operations, statuses []string }

// requests lists a caller's Cloud Control operations, the newest first, from an offset; next is 0 at the end.
func (s *Sandbox) requests(caller Caller, f requestFilter, offset, limit int) (events []ProgressEvent, next int, err error) {
	rows, err := s.db.read.Query(`SELECT `+requestColumns+` FROM requests WHERE account = ? AND region = ? AND route = ? ORDER BY started DESC, token`,
		caller.Account, caller.Region, routeCloudControl)
	if err != nil {
		return nil, 0, err
	}
	now := s.now()
	seen := 0
	err = eachRow(rows, func(rows *sql.Rows) error {
		r, err := scanRequest(rows.Scan)
		if err != nil {
			return err
		}
		e := r.event(now, false)
		if len(f.operations) > 0 && !contains(f.operations, e.Operation) || len(f.statuses) > 0 && !contains(f.statuses, e.OperationStatus) {
			return nil
		}
		seen++
		switch {
		case seen <= offset:
		case len(events) < limit:
			events = append(events, e)
		case next == 0:
			next = offset + limit
		}
		return nil
	})
	return events, next, err
}
