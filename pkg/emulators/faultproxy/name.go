package faultproxy

import "net/http"

// Name returns the service and the operation of a call of AWS, as far as it says: of a REST call, the operation is method
// and path.
func Name(r *http.Request, body []byte) (service, operation string) {
	s := speakerOf(delivery{method: r.Method, uri: r.URL.RequestURI(), host: r.Host, header: r.Header, body: body})
	return s.service, s.operation
}
