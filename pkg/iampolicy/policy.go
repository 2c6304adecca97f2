// Package iampolicy holds IAM policy documents and decides whether they allow a call, as IAM would for the
// identity-based policies of one principal: a matching Deny wins, then a matching Allow, else the call is denied
// (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html). Resource policies,
// boundaries, organizations and sessions are not in the room.
//
// Subpackage calls tells which actions and resources a request to AWS is, so that the policies of a program can be
// held against what it does.
package iampolicy

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Version is the version of the policy language.
const Version = "2012-10-17"

// Document is a policy.
type Document struct {
	Version   string      `json:"Version"`
	Statement []Statement `json:"Statement"`
}

// Statement is one statement of a policy.
type Statement struct {
	Sid       string   `json:"Sid,omitempty"`
	Effect    string   `json:"Effect"` // Allow or Deny
	Principal any      `json:"Principal,omitempty"`
	Action    []string `json:"Action"`
	Resource  []string `json:"Resource,omitempty"`
	// Condition are the values by operator and key.
	Condition map[string]map[string][]string `json:"Condition,omitempty"`
}

// Allow is a statement that allows actions on resources.
func Allow(sid string, actions []string, resources ...string) Statement {
	return Statement{Sid: sid, Effect: "Allow", Action: actions, Resource: resources}
}

// If returns the statement under one condition more: an operator, a key, and its values.
func (s Statement) If(operator, key string, values ...string) Statement {
	condition := map[string]map[string][]string{operator: {key: values}}
	for o, keys := range s.Condition {
		if condition[o] == nil {
			condition[o] = map[string][]string{}
		}
		for k, v := range keys {
			condition[o][k] = v
		}
	}
	s.Condition = condition
	return s
}

// New is a policy of these statements.
func New(statements ...Statement) Document { return Document{Version: Version, Statement: statements} }

// JSON renders the policy for people and for IAM: indented, with the characters that IAM expects.
func (d Document) JSON() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(d); err != nil {
		return nil, fmt.Errorf("encoding a policy: %w", err)
	}
	return b.Bytes(), nil
}

// Parse reads a policy. Where the language takes one value or a list of them, both are read.
func Parse(b []byte) (Document, error) {
	var raw struct {
		Version   string
		Statement oneOrMore[struct {
			Sid, Effect                          string
			Principal                            any
			Action, Resource                     oneOrMore[string]
			NotAction, NotResource, NotPrincipal any
			Condition                            map[string]map[string]oneOrMore[any]
		}]
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return Document{}, fmt.Errorf("reading a policy: %w", err)
	}
	d := Document{Version: raw.Version}
	for i, r := range raw.Statement {
		if r.Effect != "Allow" && r.Effect != "Deny" {
			return Document{}, fmt.Errorf("reading a policy: statement %d has the effect %q", i, r.Effect)
		}
		if r.NotAction != nil || r.NotResource != nil || r.NotPrincipal != nil {
			return Document{}, fmt.Errorf("reading a policy: statement %d says what it is not about, which is not supported", i)
		}
		s := Statement{Sid: r.Sid, Effect: r.Effect, Principal: r.Principal, Action: r.Action, Resource: r.Resource}
		for operator, keys := range r.Condition {
			for key, values := range keys {
				texts := make([]string, 0, len(values))
				for _, v := range values {
					texts = append(texts, fmt.Sprint(v))
				}
				s = s.If(operator, key, texts...)
			}
		}
		d.Statement = append(d.Statement, s)
	}
	return d, nil
}

// oneOrMore is a list that may be written as its only element.
type oneOrMore[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (o *oneOrMore[T]) UnmarshalJSON(b []byte) error {
	if trimmed := bytes.TrimSpace(b); len(trimmed) > 0 && trimmed[0] == '[' {
		return json.Unmarshal(b, (*[]T)(o))
	}
	var one T
	if err := json.Unmarshal(b, &one); err != nil {
		return err
	}
	*o = []T{one}
	return nil
}
