package sandbox

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// sts answers GetCallerIdentity in the AWS query protocol
// (https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html).
func (s *Sandbox) sts(w http.ResponseWriter, caller Caller, requestID, body string) {
	form, err := url.ParseQuery(body)
	action := form.Get("Action")
	s.count(action)
	w.Header().Set("Content-Type", "text/xml")
	if err != nil || action != "GetCallerIdentity" {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>InvalidAction</Code>`+
			`<Message>the sandbox's STS answers GetCallerIdentity only</Message></Error><RequestId>%s</RequestId></ErrorResponse>`, requestID)
		return
	}
	part, _ := partition(caller.Region)
	_, _ = io.WriteString(w, fmt.Sprintf(`<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>`+
		`<Arn>arn:%s:iam::%s:user/sandbox</Arn><UserId>AIDASANDBOXSANDBOX00</UserId><Account>%s</Account></GetCallerIdentityResult>`+
		`<ResponseMetadata><RequestId>%s</RequestId></ResponseMetadata></GetCallerIdentityResponse>`, part, caller.Account, caller.Account, requestID))
}
