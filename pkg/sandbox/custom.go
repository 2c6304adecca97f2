package sandbox

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// CustomResourceEvent is what a custom resource's handler is invoked with
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-requests.html), without the response
// URL: the simulated handler answers directly.
type CustomResourceEvent struct {
	// RequestType is Create, Update or Delete.
	RequestType string `json:"RequestType"`
	// RequestID makes the invocation repeatable: the same id gets the same response.
	RequestID             string         `json:"RequestId"`
	ServiceToken          string         `json:"ServiceToken"`
	StackID               string         `json:"StackId"`
	LogicalResourceID     string         `json:"LogicalResourceId"`
	PhysicalResourceID    string         `json:"PhysicalResourceId,omitempty"` // not for Create
	ResourceType          string         `json:"ResourceType"`
	ResourceProperties    map[string]any `json:"ResourceProperties"`
	OldResourceProperties map[string]any `json:"OldResourceProperties,omitempty"`
	// WantAttributes are the names that the template reads with Fn::GetAtt: a real handler knows what its templates
	// need, the simulated one is told.
	WantAttributes []string `json:"WantAttributes,omitempty"`
}

// CustomResourceResponse is the handler's answer. Status is SUCCESS, or FAILED with a Reason.
type CustomResourceResponse struct {
	Status             string         `json:"Status"`
	Reason             string         `json:"Reason,omitempty"`
	PhysicalResourceID string         `json:"PhysicalResourceId"`
	NoEcho             bool           `json:"NoEcho,omitempty"`
	Data               map[string]any `json:"Data,omitempty"`
}

// invokeCustom is the simulated handler. It keeps a custom resource like any other: listed, with references.
func (s *Sandbox) invokeCustom(ctx context.Context, caller Caller, e CustomResourceEvent) (CustomResourceResponse, error) {
	if e.ResourceType != customType && (!strings.HasPrefix(e.ResourceType, customPrefix) || e.ResourceType == customPrefix) {
		return CustomResourceResponse{}, refuse(codeValidation, "%s is not a custom resource", e.ResourceType)
	}
	if e.RequestID == "" || e.LogicalResourceID == "" || e.ServiceToken == "" {
		return CustomResourceResponse{}, refuse(codeValidation, "RequestId, LogicalResourceId and ServiceToken are required")
	}
	if (e.RequestType == "Create") != (e.PhysicalResourceID == "") {
		return CustomResourceResponse{}, refuse(codeValidation, "PhysicalResourceId belongs to Update and Delete, not to Create")
	}
	sum := sha256.Sum256([]byte(encode([]any{e.RequestType, e.ResourceType, e.LogicalResourceID, e.PhysicalResourceID, e.ServiceToken, e.ResourceProperties})))
	digest := hex.EncodeToString(sum[:])
	var response CustomResourceResponse
	err := s.db.update(ctx, func(tx *tx) error {
		now := s.now()
		if err := sweep(tx, now); err != nil {
			return err
		}
		key := caller.Account + " " + caller.Region + " " + e.RequestID
		var before, text string
		found, err := tx.row(`SELECT digest, response FROM responses WHERE request = ?`, []any{key}, &before, &text)
		if err != nil {
			return err
		}
		if found {
			if before != digest {
				return refuse(codeTokenConflict, "the RequestId has already been used in another invocation")
			}
			return json.Unmarshal([]byte(text), &response)
		}
		c := &customCall{s: s, tx: tx, caller: caller, event: e}
		switch e.RequestType {
		case "Create":
			response, err = c.create()
		case "Update":
			response, err = c.update()
		case "Delete":
			response, err = c.delete()
		default:
			err = refuse(codeValidation, "RequestType must be Create, Update or Delete")
		}
		if err != nil {
			return err
		}
		return tx.exec(`INSERT INTO responses (request, digest, response, started) VALUES (?, ?, ?, ?)`, key, digest, encode(response), millis(now))
	})
	return response, err
}

type customCall struct {
	s      *Sandbox
	tx     *tx
	caller Caller
	event  CustomResourceEvent
}

// row is the custom resource as the sandbox keeps it.
func (c *customCall) row(physical string) *resourceRow {
	model := map[string]any{}
	if c.event.ResourceProperties != nil {
		model = clone(withoutNulls(c.event.ResourceProperties)).(map[string]any)
	}
	model["ServiceToken"] = c.event.ServiceToken
	return &resourceRow{account: c.caller.Account, region: c.caller.Region, typeName: c.event.ResourceType, identifier: physical,
		route: routeCustom, model: model, born: millis(c.s.now())}
}

// handlerGone reports whether the function behind the service token is one that this sandbox has seen deleted.
func (c *customCall) handlerGone() (bool, error) {
	var resource sql.NullInt64
	known, err := c.tx.row(`SELECT resource FROM identities WHERE value = ?`, []any{c.event.ServiceToken}, &resource)
	return known && !resource.Valid, err
}

func (c *customCall) failed(physical, format string, args ...any) CustomResourceResponse {
	return CustomResourceResponse{Status: "FAILED", Reason: fmt.Sprintf(format, args...), PhysicalResourceID: physical}
}

func (c *customCall) create() (CustomResourceResponse, error) {
	physical := ""
	c.s.draw(func(m *maker) {
		physical = strings.ToLower(word(c.event.ResourceType)) + "-" + m.random(lowerDigits, 16)
	})
	gone, err := c.handlerGone()
	if err != nil || gone {
		return c.failed(physical, "the function that ServiceToken names does not exist"), err
	}
	row := c.row(physical)
	if err := c.store(row); err != nil {
		return CustomResourceResponse{}, err
	}
	return c.success(physical), nil
}

// store inserts the resource. Only its service token counts as a reference: what a handler does with its other
// properties nobody knows.
func (c *customCall) store(row *resourceRow) error {
	var err error
	row.id, err = c.tx.insert(`INSERT INTO resources (account, region, type, identifier, route, model, born) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		row.account, row.region, row.typeName, row.identifier, row.route, encode(row.model), row.born)
	if err != nil {
		return err
	}
	return c.link(row)
}

func (c *customCall) link(row *resourceRow) error {
	if err := c.tx.exec(`DELETE FROM refs WHERE resource = ?`, row.id); err != nil {
		return err
	}
	return c.tx.exec(`INSERT OR REPLACE INTO refs (value, resource, path, relation, required) VALUES (?, ?, 'ServiceToken', '', 1)`, c.event.ServiceToken, row.id)
}

func (c *customCall) update() (CustomResourceResponse, error) {
	physical := c.event.PhysicalResourceID
	old, found, err := find(c.tx, c.caller, c.event.ResourceType, physical)
	if err != nil {
		return CustomResourceResponse{}, err
	}
	if !found {
		return c.failed(physical, "there is no %s with this PhysicalResourceId", c.event.ResourceType), nil
	}
	gone, err := c.handlerGone()
	if err != nil || gone {
		return c.failed(physical, "the function that ServiceToken names does not exist"), err
	}
	row := c.row(physical)
	row.id = old.id
	if err := c.tx.exec(`UPDATE resources SET model = ? WHERE id = ?`, encode(row.model), row.id); err != nil {
		return CustomResourceResponse{}, err
	}
	return c.success(physical), c.link(row)
}

// delete succeeds for what is already gone, as handlers must.
func (c *customCall) delete() (CustomResourceResponse, error) {
	physical := c.event.PhysicalResourceID
	old, found, err := find(c.tx, c.caller, c.event.ResourceType, physical)
	if err != nil || !found {
		return CustomResourceResponse{Status: statusSuccess, PhysicalResourceID: physical}, err
	}
	gone, err := c.handlerGone()
	if err != nil || gone {
		return c.failed(physical, "the function that ServiceToken names does not exist"), err
	}
	return CustomResourceResponse{Status: statusSuccess, PhysicalResourceID: physical}, drop(c.tx, old.id)
}

// success answers with a value for every attribute that is read: the same one as long as the resource lives.
func (c *customCall) success(physical string) CustomResourceResponse {
	data := map[string]any{}
	for _, name := range c.event.WantAttributes {
		data[name] = c.attribute(physical, name)
	}
	return CustomResourceResponse{Status: statusSuccess, PhysicalResourceID: physical, Data: data}
}

func (c *customCall) attribute(physical, name string) string {
	sum := sha256.Sum256([]byte(physical + "\x00" + name))
	random := hex.EncodeToString(sum[:8])
	part, dns := partition(c.caller.Region)
	label := strings.ToLower(strings.Map(func(r rune) rune {
		if r == '.' || r == '/' || r == ':' || r == ' ' {
			return '-'
		}
		return r
	}, name))
	switch {
	case strings.HasSuffix(name, "Arn"), strings.HasSuffix(name, "ARN"):
		return fmt.Sprintf("arn:%s:custom:%s:%s:%s/%s", part, c.caller.Region, c.caller.Account, label, random)
	case strings.HasSuffix(name, "Url"), strings.HasSuffix(name, "URL"), strings.HasSuffix(name, "Uri"):
		return fmt.Sprintf("https://%s.custom.%s.%s", random, c.caller.Region, dns)
	}
	return label + "-" + random
}
