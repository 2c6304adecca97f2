package faultproxy

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// protocol is how a service writes its errors.
// https://smithy.io/2.0/aws/protocols/index.html
type protocol int

const (
	restJSON protocol = iota
	awsJSON
	query
	ec2Query
	s3XML
	cbor
)

// speaker is the service that a request is for, and its language.
type speaker struct {
	service, operation string
	protocol           protocol
	contentType        string
}

func speakerOf(d delivery) speaker {
	s := speaker{service: signingName(d.header.Get("Authorization")), contentType: d.header.Get("Content-Type")}
	path, _, _ := strings.Cut(d.uri, "?")
	target := d.header.Get("X-Amz-Target")
	form := strings.HasPrefix(s.contentType, "application/x-www-form-urlencoded")
	switch {
	case d.header.Get("Smithy-Protocol") == "rpc-v2-cbor":
		s.protocol, s.operation = cbor, path[strings.LastIndexByte(path, '/')+1:]
	case target != "":
		s.protocol, s.operation = awsJSON, target[strings.LastIndexByte(target, '.')+1:]
	case form:
		s.protocol = query
		if s.service == "ec2" {
			s.protocol = ec2Query
		}
		if values, err := url.ParseQuery(string(d.body)); err == nil {
			s.operation = values.Get("Action")
		}
	case s.service == "s3":
		s.protocol, s.operation = s3XML, d.method+" "+path
	default:
		s.operation = d.method + " " + path
	}
	if name := d.header.Get(OperationHeader); name != "" {
		s.operation = name
	}
	return s
}

// signingName reads the service from the scope of a signature: "Credential=AKID/20260301/us-east-1/sqs/aws4_request".
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
func signingName(authorization string) string {
	_, scope, _ := strings.Cut(authorization, "Credential=")
	scope, _, _ = strings.Cut(scope, ",")
	parts := strings.Split(scope, "/")
	if len(parts) < 5 {
		return ""
	}
	return parts[3]
}

// refusal is a code with its status.
type refusal struct {
	code   string
	status int
}

// throttles are the codes by which services refuse a call for its rate, from their API references; every other one says
// ThrottlingException, or Throttling in the query protocol.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
// https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html
// https://docs.aws.amazon.com/lambda/latest/api/API_CreateFunction.html
// https://docs.aws.amazon.com/apigatewayv2/latest/api-reference/apis.html
// https://docs.aws.amazon.com/scheduler/latest/APIReference/API_CreateSchedule.html
var throttles = map[string]refusal{
	"ec2":        {"RequestLimitExceeded", http.StatusServiceUnavailable},
	"s3":         {"SlowDown", http.StatusServiceUnavailable},
	"sqs":        {"RequestThrottled", http.StatusBadRequest},
	"lambda":     {"TooManyRequestsException", http.StatusTooManyRequests},
	"apigateway": {"TooManyRequestsException", http.StatusTooManyRequests},
	"scheduler":  {"ThrottlingException", http.StatusTooManyRequests},
}

func (s speaker) throttle(w http.ResponseWriter) {
	r, ok := throttles[s.service]
	switch {
	case ok:
	case s.protocol == query:
		r = refusal{"Throttling", http.StatusBadRequest}
	default:
		r = refusal{"ThrottlingException", http.StatusBadRequest}
	}
	s.refuse(w, r, "Rate exceeded")
}

func (s speaker) fail(w http.ResponseWriter) {
	r := refusal{"InternalFailure", http.StatusInternalServerError}
	switch {
	case s.protocol == s3XML || s.protocol == ec2Query:
		r.code = "InternalError"
	case s.service == "lambda":
		r.code = "ServiceException"
	}
	s.refuse(w, r, "An internal error has occurred")
}

// requestID is that of every refusal.
const requestID = "fa017000-0000-4000-8000-000000000000"

func (s speaker) refuse(w http.ResponseWriter, r refusal, message string) {
	h := w.Header()
	h.Set("X-Amzn-Requestid", requestID)
	var text string
	switch s.protocol {
	case awsJSON:
		h.Set("Content-Type", s.contentType)
		if s.service == "sqs" {
			// https://smithy.io/2.0/aws/protocols/aws-query-protocol.html#x-amzn-query-error
			h.Set("X-Amzn-Query-Error", r.code+";Sender")
		}
		text = fmt.Sprintf(`{"__type":"com.amazonaws.%s#%s","message":%q}`, s.service, r.code, message)
	case cbor:
		h.Set("Content-Type", "application/cbor")
		h.Set("Smithy-Protocol", "rpc-v2-cbor")
		text = "\xa2" + cborText("__type") + cborText("com.amazonaws."+s.service+"#"+r.code) + cborText("message") + cborText(message)
	case query:
		h.Set("Content-Type", "text/xml")
		text = fmt.Sprintf("<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error><RequestId>%s</RequestId></ErrorResponse>",
			escaped(r.code), escaped(message), requestID)
	case ec2Query:
		h.Set("Content-Type", "text/xml;charset=UTF-8")
		text = fmt.Sprintf("%s<Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors><RequestID>%s</RequestID></Response>",
			xml.Header, escaped(r.code), escaped(message), requestID)
	case s3XML:
		h.Set("Content-Type", "application/xml")
		h.Set("X-Amz-Request-Id", requestID)
		text = fmt.Sprintf("%s<Error><Code>%s</Code><Message>%s</Message><RequestId>%s</RequestId></Error>",
			xml.Header, escaped(r.code), escaped(message), requestID)
	default:
		h.Set("Content-Type", "application/json")
		h.Set("X-Amzn-Errortype", r.code)
		text = fmt.Sprintf(`{"message":%q}`, message)
	}
	w.WriteHeader(r.status)
	_, _ = w.Write([]byte(text))
}

// cborText is a text string of fewer than 256 bytes (RFC 8949, §3.1).
func cborText(s string) string {
	if len(s) < 24 {
		return string([]byte{0x60 | byte(len(s))}) + s
	}
	return string([]byte{0x78, byte(len(s))}) + s
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder never fails
	return b.String()
}
