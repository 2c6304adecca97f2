package sandbox

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
)

// Header names of the two protocols. The direct API is chosen by its own header, with "Sandbox." operations.
const (
	targetHeader = "X-Amz-Target"
	directHeader = "X-Slipway-Target"
	ccPrefix     = "CloudApiService."
	directPrefix = "Sandbox."
)

// maxBody bounds a request: a model is at most 256 KiB, an event at most 1 MiB.
const maxBody = 4 << 20

// DefaultRegion is the region of a caller whose credentials name none.
const DefaultRegion = "us-east-1"

var (
	scopePattern   = regexp.MustCompile(`Credential=([^/,\s]+)/[0-9]{8}/([a-z0-9-]+)/[a-z0-9-]+/aws4_request`)
	accountPattern = regexp.MustCompile(`^[0-9]{12}$`)
)

// callerOf reads account and region from the credential scope of a SigV4 signature. Signatures aren't checked.
// An access key id of twelve digits is an account id.
func callerOf(r *http.Request) Caller {
	c := Caller{DefaultAccount, DefaultRegion}
	m := scopePattern.FindStringSubmatch(r.Header.Get("Authorization"))
	if m == nil {
		return c
	}
	if accountPattern.MatchString(m[1]) {
		c.Account = m[1]
	}
	c.Region = m[2]
	return c
}

// ServeHTTP answers Cloud Control, STS and the direct API.
func (s *Sandbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	requestID := ""
	s.draw(func(m *maker) { requestID, _ = m.builtin("uuid") })
	w.Header().Set("x-amzn-RequestId", requestID)
	if r.Method != http.MethodPost {
		writeError(w, refuse(codeUnknownOperation, "the sandbox answers POST requests only"))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		writeError(w, refuse(codeValidation, "the request body can't be read"))
		return
	}
	caller := callerOf(r)
	if target := r.Header.Get(directHeader); target != "" {
		name, ok := strings.CutPrefix(target, directPrefix)
		s.count(target)
		s.answer(w, "application/json", func() (any, error) {
			if !ok {
				return nil, refuse(codeUnknownOperation, "the direct API's operations begin with %s", directPrefix)
			}
			return s.direct(r.Context(), caller, name, body)
		})
		return
	}
	if target := r.Header.Get(targetHeader); target != "" {
		name, ok := strings.CutPrefix(target, ccPrefix)
		s.count(name)
		s.answer(w, "application/x-amz-json-1.0", func() (any, error) {
			if !ok {
				return nil, refuse(codeUnknownOperation, "the sandbox serves Cloud Control and STS, not %s", target)
			}
			return s.cloudControl(r.Context(), caller, name, body)
		})
		return
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		s.sts(w, caller, requestID, string(body))
		return
	}
	writeError(w, refuse(codeUnknownOperation, "the request names no operation"))
}

func (s *Sandbox) answer(w http.ResponseWriter, contentType string, call func() (any, error)) {
	out, err := call()
	if err != nil {
		writeError(w, err)
		return
	}
	w.Header().Set("Content-Type", contentType)
	_, _ = io.WriteString(w, encode(out))
}

// writeError writes an error as AWS's JSON protocols do: 400 for refusals, 500 for faults of the sandbox itself.
func writeError(w http.ResponseWriter, err error) {
	var r *Refusal
	status := http.StatusBadRequest
	if !errors.As(err, &r) {
		r, status = &Refusal{codeInternal, err.Error()}, http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.Header().Set("x-amzn-ErrorType", r.Code)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, encode(map[string]any{"__type": "com.amazon.cloudapiservice#" + r.Code, "Message": r.Message, "message": r.Message}))
}

// decodeBody reads the JSON of a request, numbers as json.Number.
func decodeBody(body []byte, into any) error {
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return refuse("SerializationException", "the request body is not the JSON that the operation takes")
	}
	return nil
}
