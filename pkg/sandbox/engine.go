package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

// Refusal is a request that is turned down at once, before there is an operation to ask about: Cloud Control's
// exceptions. Code is AWS's, Message holds no property value.
type Refusal struct {
	Code    string
	Message string
}

// Error implements error.
func (r *Refusal) Error() string { return r.Code + ": " + r.Message }

func refuse(code, format string, args ...any) error {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// The codes of refusals
// (https://docs.aws.amazon.com/cloudcontrolapi/latest/APIReference/API_CreateResource.html#API_CreateResource_Errors).
// ValidationException is not in that list, yet it is what the service answers to a model that does not fit the
// schema and to a patch of a read-only property.
const (
	codeValidation       = "ValidationException"
	codeInvalidRequest   = "InvalidRequestException"
	codeTypeNotFound     = "TypeNotFoundException"
	codeUnsupported      = "UnsupportedActionException"
	codeNotFound         = "ResourceNotFoundException"
	codeNotUpdatable     = "NotUpdatableException"
	codeConcurrent       = "ConcurrentOperationException"
	codeConcurrentModify = "ConcurrentModificationException"
	codeTokenConflict    = "ClientTokenConflictException"
	codeRequestNotFound  = "RequestTokenNotFoundException"
	codeUnknownOperation = "UnknownOperationException"
	codeInternal         = "InternalFailure"
)

// The codes of failed operations
// (https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-test-contract-errors.html).
const (
	failureNone           = ""
	failureAlreadyExists  = "AlreadyExists"
	failureNotFound       = "NotFound"
	failureInvalidRequest = "InvalidRequest"
	failureConflict       = "ResourceConflict"
	failureNotUpdatable   = "NotUpdatable"
)

// The statuses of operations that occur here.
const (
	statusInProgress = "IN_PROGRESS"
	statusSuccess    = "SUCCESS"
	statusFailed     = "FAILED"
	statusCancelled  = "CANCEL_COMPLETE"
)

// Types that CloudFormation answers for itself.
const (
	customType      = "AWS::CloudFormation::CustomResource"
	customPrefix    = "Custom::"
	nestedStackType = "AWS::CloudFormation::Stack"
)

// Limits.
const (
	tokenLife              = 36 * time.Hour     // how long a client token is remembered
	requestLife            = 7 * 24 * time.Hour // how long a request's status can be asked for
	maxModel               = 262144             // bytes of a desired state or patch document
	shortestPollHint       = 250 * time.Millisecond
	longestPollHint        = 5 * time.Second
	attemptsForUniqueNames = 8
)

// failure is how an operation ends badly: a handler error code and a message.
type failure struct{ code, message string }

func fail(code, format string, args ...any) failure {
	return failure{code, fmt.Sprintf(format, args...)}
}

// mutation is a request to create, update or delete.
type mutation struct {
	caller      Caller
	route       route
	op          string
	typeName    string
	identifier  string         // update, delete
	desired     map[string]any // create; update through the direct API: all properties
	patch       string         // update through Cloud Control
	clientToken string
	// known are properties that the caller knows the resource by, label what it calls it. They are no part of what is asked
	// for.
	known map[string]any
	label string
}

// digest tells whether two mutations ask for the same.
func (m mutation) digest() string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00%s\x00%s\x00", m.route, m.op, m.typeName, m.identifier, m.patch)
	if m.desired != nil {
		fmt.Fprint(h, encode(m.desired))
	}
	return hex.EncodeToString(h.Sum(nil))
}

var (
	typePattern  = regexp.MustCompile(`^[A-Za-z0-9]{2,64}::[A-Za-z0-9]{2,64}::[A-Za-z0-9]{2,64}$`)
	tokenPattern = regexp.MustCompile(`^[-A-Za-z0-9+/=]{1,128}$`)
)

// lookup finds a type and checks that the route serves it.
func (s *Sandbox) lookup(r route, typeName string) (*schema.Type, error) {
	if strings.HasPrefix(typeName, customPrefix) || typeName == customType {
		return nil, refuse(codeUnsupported, "%s is answered by its own handler: invoke that", typeName)
	}
	if !typePattern.MatchString(typeName) {
		return nil, refuse(codeValidation, "the type name does not match %s", typePattern)
	}
	t, ok := s.types(typeName)
	if !ok {
		return nil, refuse(codeTypeNotFound, "The type '%s' cannot be found.", typeName)
	}
	if typeName == nestedStackType {
		return nil, refuse(codeUnsupported, "the sandbox does not deploy nested stacks: %s is not simulated", typeName)
	}
	if r == routeCloudControl && !t.Provisionable {
		return nil, refuse(codeUnsupported, "Resource type %s does not support CREATE, READ, UPDATE or DELETE action", typeName)
	}
	return t, nil
}

// submit accepts a mutation: it answers with the operation's first event, or with that of an earlier request with
// the same client token. The whole outcome is decided now and becomes visible when the operation's time is over.
func (s *Sandbox) submit(ctx context.Context, m mutation) (ProgressEvent, error) {
	t, err := s.lookup(m.route, m.typeName)
	if err != nil {
		return ProgressEvent{}, err
	}
	if m.clientToken != "" && !tokenPattern.MatchString(m.clientToken) {
		return ProgressEvent{}, refuse(codeValidation, "the client token does not match %s", tokenPattern)
	}
	if m.op == opCreate {
		m.desired = withoutNulls(m.desired).(map[string]any)
		if err := checkModel(t, m.desired); err != nil {
			return ProgressEvent{}, err
		}
	}
	digest := m.digest()
	var event ProgressEvent
	err = s.db.update(ctx, func(tx *tx) error {
		now := s.now()
		if err := sweep(tx, now); err != nil {
			return err
		}
		earlier, found, err := replay(tx, m, digest, now)
		if err != nil {
			return err
		}
		if found {
			event = earlier.event(now, false)
			return nil
		}
		o := &operation{s: s, tx: tx, t: t, mutation: m, digest: digest, now: now}
		switch m.op {
		case opCreate:
			err = o.create()
		case opUpdate:
			err = o.update()
		case opDelete:
			err = o.delete()
		}
		if err != nil {
			return err
		}
		event = o.request.event(now, true)
		return nil
	})
	return event, err
}

// checkModel refuses properties that the type does not have or that don't fit, as Cloud Control does before it
// calls a handler.
func checkModel(t *schema.Type, properties map[string]any) error {
	if len(t.Properties) == 0 && len(t.Attributes) == 0 && len(t.ReadOnly) == 0 {
		return nil // nothing is known about the type
	}
	problems := schema.Validate(t, properties, schema.Options{})
	if len(problems) == 0 {
		return nil
	}
	parts := make([]string, len(problems))
	for i, p := range problems {
		owner := p.Path
		if p.Kind == schema.ProblemRequired || p.Kind == schema.ProblemUnknown {
			owner = p.Path[:max(0, len(p.Path)-1)]
		}
		at := "#"
		if len(owner) > 0 {
			at += "/" + strings.Join(owner, "/")
		}
		last := ""
		if len(p.Path) > 0 {
			last = p.Path[len(p.Path)-1]
		}
		switch p.Kind {
		case schema.ProblemRequired:
			parts[i] = fmt.Sprintf("%s: required key [%s] not found", at, last)
		case schema.ProblemUnknown:
			parts[i] = fmt.Sprintf("%s: extraneous key [%s] is not permitted", at, last)
		case schema.ProblemReadOnly:
			parts[i] = fmt.Sprintf("%s: read-only property [%s] cannot be specified", at, last)
		default:
			parts[i] = fmt.Sprintf("%s: %s", at, p.Message)
		}
	}
	return refuse(codeValidation, "Model validation failed (%s)", strings.Join(parts, "\n"))
}

// operation is one mutation inside the transaction that carries it out.
type operation struct {
	mutation
	s       *Sandbox
	tx      *tx
	t       *schema.Type
	digest  string
	now     time.Time
	request requestRow
}

// due is when the operation is over.
func (o *operation) due(op string, part float64) time.Time {
	if o.s.speed <= 0 {
		return o.now
	}
	d := o.s.latencies.sample(o.typeName, op, o.route, o.s.seed, o.digest)
	return o.now.Add(time.Duration(float64(d) * part / o.s.speed))
}

// record stores the operation.
func (o *operation) record(identifier, status string, f failure, model map[string]any, resource int64, due time.Time) error {
	text := ""
	if model != nil {
		text = encode(public(o.t, model))
	}
	token := ""
	o.s.draw(func(m *maker) { token, _ = m.builtin("uuid") })
	o.request = requestRow{
		token: token, caller: o.caller, route: o.route, clientToken: o.clientToken, digest: o.digest, operation: o.op,
		typeName: o.typeName, identifier: identifier, status: status, failure: f, model: text, resource: resource,
		started: millis(o.now), due: millis(due),
	}
	return o.request.insert(o.tx)
}

// recordFailure stores an operation that fails. It fails sooner than it would have succeeded.
func (o *operation) recordFailure(identifier string, f failure) error {
	return o.record(identifier, statusFailed, f, nil, 0, o.due(o.op, 0.25))
}

// identifierOf joins the values of the primary identifier.
func identifierOf(t *schema.Type, model map[string]any) string {
	paths := t.PrimaryIdentifier
	if len(paths) == 0 && t.RefProperty != "" {
		paths = []string{t.RefProperty}
	}
	parts := make([]string, len(paths))
	for i, p := range paths {
		parts[i] = getString(model, p)
	}
	return strings.Join(parts, "|")
}

func millis(t time.Time) int64 { return t.UnixMilli() }
