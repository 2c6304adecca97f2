package run

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/secret"
)

// A custom resource can say that its data is secret
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-responses.html, NoEcho). Its attributes then
// go the way of NoEcho parameters: into the run's vault for those who read them in the same run, into the record as
// "***", and into the sidecar as keyed digests, by which a later run sees whether what is made from them is the same.

// attributePath is the place of a secret attribute among the digests of its resource.
func attributePath(attribute string) secret.Path { return secret.Path{"@" + attribute} }

// attributeKey is that place's key in the sidecar.
func attributeKey(id, attribute string) string { return placeKey(id, attributePath(attribute)) }

// anotherSecret stands, in the comparison with a record, for what is made from a secret attribute and is not what was
// recorded.
const anotherSecret = secret.Mask + " (another value)"

// concealAttributes takes the secret attributes out of a step's progress before it is recorded. It returns the handle
// under which the vault has them, and their digests by path.
func (e *Engine) concealAttributes(ctx context.Context, input operationInput, p *provider.Progress) (handle string, digests map[string]string, err error) {
	ref := StackRequest{StackRef: runlog.StackRef{Account: input.Account, Region: input.Region, Name: input.Stack}}
	digests = map[string]string{}
	for _, name := range sortedIDs(p.Attributes) {
		path, digest := attributePath(name), ""
		if e.Vault != nil {
			if digest, err = e.digest(ctx, ref, placeKey(input.Operation.LogicalID, path), p.Attributes[name]); err != nil {
				return "", nil, err
			}
		}
		digests[path.Key()] = digest
	}
	if e.Vault != nil && len(digests) > 0 {
		if handle, err = e.Vault.Put(ctx, input.Root, p.Attributes); err != nil {
			return "", nil, fmt.Errorf("concealing the attributes of %s: %w", input.Operation.LogicalID, err)
		}
	}
	masked := make(map[string]any, len(p.Attributes))
	for name, value := range p.Attributes {
		masked[name] = secret.Masked(value)
	}
	p.Attributes, p.Observed = masked, nil
	return handle, digests, nil
}

// openAttributes gives the resources whose handler has answered in this run their secret attributes back, in memory.
func (s *stackTurn) openAttributes(ctx context.Context, resources map[string]intrinsic.Resource) error {
	for _, id := range sortedIDs(s.ops) {
		op := s.ops[id]
		r, recorded := resources[op.LogicalID]
		if op.Attributes == "" || !recorded || r.PhysicalID != op.PhysicalID {
			continue
		}
		if s.e.Vault == nil {
			return errNoVault
		}
		var attributes map[string]any
		if err := s.e.Vault.Get(ctx, s.h.Root, op.Attributes, &attributes); err != nil {
			return fmt.Errorf("reading the attributes of %s: %w", op.LogicalID, err)
		}
		r.Attributes = maps.Clone(r.Attributes)
		for name, value := range attributes {
			// Only what is known to be secret is taken: the rest of this turn conceals nothing else.
			if _, masked := s.ledger.masked[attributeKey(op.LogicalID, name)]; masked {
				r.Attributes[name] = value
			}
		}
		resources[op.LogicalID] = r
	}
	return nil
}

// told are the resources whose secret attributes this run has.
func (s *stackTurn) told() map[string]bool {
	told := map[string]bool{}
	for _, op := range s.ops {
		if op.Attributes != "" {
			told[op.LogicalID] = true
		}
	}
	return told
}

// answering are the custom resources whose handler a plan asks.
func answering(changes []diff.Change) map[string]bool {
	asked := map[string]bool{}
	for _, c := range changes {
		switch c.Action {
		case diff.ActionCreate, diff.ActionUpdate, diff.ActionReplace:
			asked[c.LogicalID] = !c.Speculative && provider.IsCustom(c.Type)
		}
	}
	return asked
}

func (v *veil) isAttribute(name string) bool {
	id, attribute, ok := strings.Cut(name, ".")
	if !ok {
		return false
	}
	_, secret := v.masked[attributeKey(id, attribute)]
	return secret
}

func (v *veil) hasSecretAttributes() bool {
	for key := range v.masked {
		if _, path, _ := strings.Cut(key, "."); strings.HasPrefix(path, "@") {
			return true
		}
	}
	return false
}

// isSecret reports whether what a name stands for (secret.NameOf) is.
func (v *veil) isSecret(name string) bool { return v.isNoEcho(name) || v.isAttribute(name) }

// keeps reports whether the value of a secret is not known in this run.
func (v *veil) keeps(name string) bool {
	if v.isAttribute(name) {
		id, _, _ := strings.Cut(name, ".")
		return !v.told[id]
	}
	return v.f.NoEcho.keeps(name)
}

// digestOf is the digest of a secret's value.
func (v *veil) digestOf(name string) string {
	if v.isAttribute(name) {
		id, attribute, _ := strings.Cut(name, ".")
		return v.masked[attributeKey(id, attribute)]
	}
	return v.f.NoEcho.Digests[name]
}

// what says what kind of secret a name stands for.
func (v *veil) what(name string) string {
	if v.isAttribute(name) {
		return "the secret attribute " + name
	}
	return "the NoEcho parameter " + name
}

// needed is the refusal of what would need a secret that this run does not have.
func (v *veil) needed(name, why string) diag.Diagnostic {
	if v.isAttribute(name) {
		id, _, _ := strings.Cut(name, ".")
		return diag.Diagnostic{
			Severity: diag.Error, Summary: "attribute " + name + " is needed and not known",
			Detail: "the handler of " + id + " calls what it answers secret, so it was not kept, and " + why,
			Next:   "Change a property of " + id + " too, so that its handler is asked again.",
		}
	}
	return diag.Diagnostic{
		Severity: diag.Error, Summary: "parameter " + name + " is needed and was not given",
		Detail: "it is a NoEcho parameter, so its value was not kept, and " + why,
		Next:   "Supply it: --parameters " + name + "=…",
	}
}
