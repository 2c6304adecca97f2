package bridge

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Front serves a bridge over HTTP. It speaks Lambda's Invoke for the functions that were put into it, by name:
//
//	POST   /2015-03-31/functions/{name}/invocations   Invoke, of RequestResponse, Event and DryRun
//	PUT    /bridge/code                               adds an archive, answers {"code": digest}
//	PUT    /bridge/functions/{name}                   puts a Function
//	POST   /bridge/invoke                             {"function": …, "requestId": …, "payload": …}: of whoever keeps functions itself
//	GET    /bridge/book, DELETE /bridge/book          invocations and calls
//
// Everything else goes to the emulator.
type Front struct {
	bridge *Bridge
	rest   *Gateway
	logger *slog.Logger

	mu        sync.Mutex
	functions map[string]Function
	mux       *http.ServeMux
}

// NewFront makes a front. Without a gateway what it does not serve is not found.
func NewFront(b *Bridge, rest *Gateway, logger *slog.Logger) *Front {
	f := &Front{bridge: b, rest: rest, logger: logger, functions: map[string]Function{}, mux: http.NewServeMux()}
	if f.logger == nil {
		f.logger = slog.New(slog.DiscardHandler)
	}
	f.mux.HandleFunc("POST /2015-03-31/functions/{name}/invocations", f.invoke)
	f.mux.HandleFunc("PUT /bridge/code", f.addCode)
	f.mux.HandleFunc("PUT /bridge/functions/{name}", f.putFunction)
	f.mux.HandleFunc("POST /bridge/invoke", f.invokeAny)
	f.mux.HandleFunc("GET /bridge/book", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, b.Book()) })
	f.mux.HandleFunc("DELETE /bridge/book", func(w http.ResponseWriter, _ *http.Request) { b.Forget(); w.WriteHeader(http.StatusNoContent) })
	f.mux.HandleFunc("/", f.other)
	return f
}

// ServeHTTP implements http.Handler.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A request of AWS may have an empty element in its path, which a mux would have cleaned away by a redirect.
	if strings.HasPrefix(r.URL.Path, "/bridge/") || strings.HasPrefix(r.URL.Path, "/2015-03-31/") {
		f.mux.ServeHTTP(w, r)
		return
	}
	f.other(w, r)
}

// Put makes a function known by its name.
func (f *Front) Put(fn Function) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.functions[fn.Name] = fn
}

func (f *Front) other(w http.ResponseWriter, r *http.Request) {
	if f.rest == nil {
		http.NotFound(w, r)
		return
	}
	f.rest.pass(w, r, "")
}

// function finds a function by what Invoke may call it: name, ARN or half an ARN, with or without a version.
func (f *Front) function(name string) (Function, bool) {
	if decoded, err := url.PathUnescape(name); err == nil {
		name = decoded
	}
	if _, after, ok := strings.Cut(name, "function:"); ok {
		name, _, _ = strings.Cut(after, ":")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	fn, ok := f.functions[name]
	return fn, ok
}

// maxEvent bounds the payload of an asynchronous invocation, in bytes.
const maxEvent = 1 << 20

// invoke is https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html.
func (f *Front) invoke(w http.ResponseWriter, r *http.Request) {
	fn, ok := f.function(r.PathValue("name"))
	if !ok {
		refuseAPI(w, http.StatusNotFound, "ResourceNotFoundException", "Function not found: "+r.PathValue("name"))
		return
	}
	kind := r.Header.Get("X-Amz-Invocation-Type")
	limit := maxPayload
	if kind == "Event" {
		limit = maxEvent
	}
	payload, err := io.ReadAll(io.LimitReader(r.Body, int64(limit)+1))
	if err != nil {
		return // the caller is gone
	}
	if len(payload) == 0 {
		payload = []byte("{}")
	}
	switch {
	case len(payload) > limit:
		refuseAPI(w, http.StatusRequestEntityTooLarge, "RequestTooLargeException", fmt.Sprintf("Request must be smaller than %d bytes for the InvokeFunction operation", limit))
		return
	case !json.Valid(payload):
		refuseAPI(w, http.StatusBadRequest, "InvalidRequestContentException", "Could not parse request body into json")
		return
	}
	e := Event{RequestID: newID(), Payload: payload, TraceID: r.Header.Get("X-Amzn-Trace-Id")}
	h := w.Header()
	h.Set("X-Amzn-Requestid", e.RequestID)
	h.Set("X-Amz-Executed-Version", fn.version())
	switch kind {
	case "DryRun":
		w.WriteHeader(http.StatusNoContent)
	case "Event":
		f.later(fn, e)
		w.WriteHeader(http.StatusAccepted)
	case "", "RequestResponse":
		f.now(w, r, fn, e)
	default:
		refuseAPI(w, http.StatusBadRequest, "InvalidParameterValueException", "the invocation type is none of RequestResponse, Event, DryRun")
	}
}

// now invokes a function and writes its answer.
func (f *Front) now(w http.ResponseWriter, r *http.Request, fn Function, e Event) {
	result, err := f.bridge.Invoke(r.Context(), fn, e)
	switch {
	case errors.Is(err, ErrThrottled):
		refuseAPI(w, http.StatusTooManyRequests, "TooManyRequestsException", "Rate Exceeded.")
		return
	case err != nil:
		refuseAPI(w, http.StatusInternalServerError, "ServiceException", err.Error())
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if result.FunctionError != "" {
		h.Set("X-Amz-Function-Error", result.FunctionError)
	}
	if r.Header.Get("X-Amz-Log-Type") == "Tail" {
		h.Set("X-Amz-Log-Result", base64.StdEncoding.EncodeToString(result.Log))
	}
	_, _ = w.Write(result.Payload)
}

// retries are the pauses before an asynchronous invocation that has failed is repeated
// (https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html).
func retries() []time.Duration { return []time.Duration{time.Minute, 2 * time.Minute} }

// later invokes a function until it succeeds, three times at most.
func (f *Front) later(fn Function, e Event) {
	go func() {
		ctx := context.WithoutCancel(f.bridge.base)
		for i := 0; ; i++ {
			result, err := f.bridge.Invoke(ctx, fn, e)
			if err == nil && result.FunctionError == "" {
				return
			}
			if i == len(retries()) || errors.Is(err, ErrClosed) {
				f.logger.Error("an event is given up", "function", fn.Name, "requestId", e.RequestID, "errorType", result.ErrorType, "error", err)
				return
			}
			if f.bridge.clock.Sleep(f.bridge.base, retries()[i]) != nil {
				return
			}
		}
	}()
}

func (f *Front) addCode(w http.ResponseWriter, r *http.Request) {
	archive, err := io.ReadAll(io.LimitReader(r.Body, maxUnpacked))
	if err != nil {
		return
	}
	digest, err := f.bridge.AddCode(archive)
	if err != nil {
		refuseAPI(w, http.StatusBadRequest, "InvalidParameterValueException", err.Error())
		return
	}
	reply(w, http.StatusOK, map[string]string{"code": digest})
}

func (f *Front) putFunction(w http.ResponseWriter, r *http.Request) {
	var fn Function
	if err := json.NewDecoder(r.Body).Decode(&fn); err != nil || fn.Name != r.PathValue("name") {
		refuseAPI(w, http.StatusBadRequest, "InvalidParameterValueException", "this is no function of that name")
		return
	}
	f.Put(fn)
	w.WriteHeader(http.StatusNoContent)
}

// Order is the body of POST /bridge/invoke.
type Order struct {
	Function  Function        `json:"function"`
	RequestID string          `json:"requestId"`
	Payload   json.RawMessage `json:"payload"`
	TraceID   string          `json:"traceId,omitempty"`
}

// Outcome is its answer. Payload is text, because a function may answer with what is no JSON.
type Outcome struct {
	Payload       string `json:"payload"`
	FunctionError string `json:"functionError,omitempty"`
	Log           string `json:"log,omitempty"`
}

// invokeAny invokes a function that comes with its definition. 428 asks for the archive.
func (f *Front) invokeAny(w http.ResponseWriter, r *http.Request) {
	var order Order
	if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
		refuseAPI(w, http.StatusBadRequest, "InvalidRequestContentException", err.Error())
		return
	}
	result, err := f.bridge.Invoke(r.Context(), order.Function, Event{RequestID: order.RequestID, Payload: order.Payload, TraceID: order.TraceID})
	switch {
	case errors.Is(err, ErrNoCode):
		refuseAPI(w, http.StatusPreconditionRequired, "CodeUnknown", err.Error())
	case errors.Is(err, ErrThrottled):
		refuseAPI(w, http.StatusTooManyRequests, "TooManyRequestsException", err.Error())
	case err != nil:
		refuseAPI(w, http.StatusInternalServerError, "ServiceException", err.Error())
	default:
		reply(w, http.StatusOK, Outcome{Payload: string(result.Payload), FunctionError: result.FunctionError, Log: string(result.Log)})
	}
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// refuseAPI is an error of Lambda's API, not of a function.
func refuseAPI(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("X-Amzn-Errortype", kind)
	reply(w, status, map[string]string{"Type": "User", "Message": message})
}
