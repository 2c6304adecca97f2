package bridge

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
)

// runtimeAPI is the API of https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html.
func (p *process) runtimeAPI() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", p.next)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", func(w http.ResponseWriter, r *http.Request) {
		p.answer(w, r, func(body []byte) Result { return Result{Payload: body} })
	})
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", func(w http.ResponseWriter, r *http.Request) {
		p.answer(w, r, errorResult)
	})
	mux.HandleFunc("POST /2018-06-01/runtime/init/error", p.initError)
	return mux
}

// next holds the call until there is work.
func (p *process) next(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	if p.current != nil {
		p.mu.Unlock()
		refuse(w, http.StatusForbidden, "InvalidStateTransition", "The invocation before has not been answered")
		return
	}
	if !p.waits {
		p.waits = true
		close(p.asked)
	}
	p.mu.Unlock()
	var inv *invocation
	select {
	case inv = <-p.events:
	case <-r.Context().Done():
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Lambda-Runtime-Aws-Request-Id", inv.RequestID)
	h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(p.clock.Now().Add(p.function.timeout()).UnixMilli(), 10))
	h.Set("Lambda-Runtime-Invoked-Function-Arn", p.function.ARN)
	if inv.TraceID != "" {
		h.Set("Lambda-Runtime-Trace-Id", inv.TraceID)
	}
	p.mu.Lock()
	p.current = inv
	p.mu.Unlock()
	_, _ = w.Write(inv.Payload)
}

// answer ends the invocation in flight.
func (p *process) answer(w http.ResponseWriter, r *http.Request, result func([]byte) Result) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxPayload+1))
	if err != nil {
		return // the process is gone
	}
	p.mu.Lock()
	inv := p.current
	if inv == nil || inv.RequestID != r.PathValue("id") {
		p.mu.Unlock()
		refuse(w, http.StatusBadRequest, "InvalidRequestID", "Invalid request ID")
		return
	}
	p.current = nil
	p.mu.Unlock()
	if len(body) > maxPayload {
		inv.outcome <- failed(inv.RequestID, ErrorTooLarge, "Response payload size exceeded maximum allowed payload size (6291456 bytes).")
		refuse(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "Exceeded maximum allowed payload size (6291456 bytes).")
		return
	}
	// The answer is confirmed first: a process that was told may end, and its end must not come before its answer.
	inv.outcome <- result(body)
	accepted(w)
}

func (p *process) initError(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxPayload))
	if err != nil {
		return
	}
	p.mu.Lock()
	late := p.waits
	if !late {
		p.initFail = body
	}
	p.mu.Unlock()
	if late {
		refuse(w, http.StatusForbidden, "InvalidStateTransition", "The function is initialized")
		return
	}
	accepted(w)
	// The runtime should end now. Whether it does or not, it serves nothing.
	p.kill()
}

func accepted(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, `{"status":"OK"}`)
}

func refuse(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"errorType": kind, "errorMessage": message})
}
