package provider

import (
	"strings"
	"testing"
	"time"
)

func TestWhatServicesSayWithoutACode(t *testing.T) {
	for _, c := range []struct {
		kind          Kind
		code, message string
		want          Kind
	}{
		{KindInvalid, "InvalidRequest", `The role defined for the function cannot be assumed by Lambda. (Service: Lambda, Status Code: 400)`, KindPropagation},
		{KindFailed, "GeneralServiceException", `Neither the global service principal states.amazonaws.com, nor the regional one is authorized to assume the provided role.`, KindPropagation},
		{KindAccessDenied, "AccessDenied", `User: arn:aws:iam::1:role/x is not authorized to perform: sts:AssumeRole on resource: arn:aws:iam::1:role/y`, KindPropagation},
		{KindAccessDenied, "AccessDenied", `User: arn:aws:iam::1:role/x is not authorized to perform: sqs:CreateQueue on resource: arn:aws:sqs:eu-west-1:1:y`, KindAccessDenied},
		{KindInvalid, "InvalidRequest", `Invalid principal in policy (Service: S3, Status Code: 400)`, KindPropagation},
		{KindInvalid, "InvalidParameter", `Invalid parameter: Policy Error: PrincipalNotFound`, KindPropagation},
		{KindAlreadyExists, "AlreadyExists", `The role defined for the function cannot be assumed by Lambda`, KindAlreadyExists},
		{KindInvalid, "InvalidRequest", `the name cannot-be-assumed-by is taken`, KindInvalid},
		{KindFailed, "GeneralServiceException", `You must wait 60 seconds after deleting a queue before you can create another with the same name.`, KindRecentlyDeleted},
		{KindConflict, "ResourceConflict", `A conflicting conditional operation is currently in progress against this resource. Please try again.`, KindRecentlyDeleted},
		{KindFailed, "AWS.SimpleQueueService.QueueDeletedRecently", ``, KindRecentlyDeleted},
		{KindInvalid, "InvalidRequest", `You can't create this secret because a secret with this name is already scheduled for deletion.`, KindInvalid},
		{KindFailed, "GeneralServiceException", `Rate exceeded (Service: CloudWatchLogs, Status Code: 400)`, KindThrottled},
		{KindInvalid, "ValidationException", `Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.`, KindProtected},
		{KindInvalid, "InvalidRequest", `Cannot delete protected DB Instance, please disable deletion protection and try again. (Service: Rds, Status Code: 400)`, KindProtected},
		{KindDependencyViolation, "ResourceConflict", `Cannot delete protected Cluster, please disable deletion protection and try again.`, KindProtected},
		{KindAccessDenied, "OperationNotPermitted", `The instance 'i-1' may not be terminated. Modify its 'disableApiTermination' instance attribute and try again.`, KindProtected},
		{KindFailed, "GeneralServiceException", `Load balancer 'arn:x' cannot be deleted because deletion protection is enabled`, KindProtected},
		{KindInvalid, "InvalidRequest", `the name deletion protection is taken`, KindInvalid},
		{KindNotFound, "NotFound", `Rate exceeded (Service: X)`, KindNotFound},
	} {
		if got := Refine(c.kind, c.code, c.message); got != c.want {
			t.Errorf("%s %q is %s, want %s", c.kind, c.message, got, c.want)
		}
	}
}

func TestAQueuesNameIsFreeAfterAMinute(t *testing.T) {
	e := Refined(&Error{Kind: KindFailed, Message: "You must wait 60 seconds after deleting a queue before you can create another with the same name."})
	if e.RetryAfter != time.Minute || !IsRecentlyDeleted(e) {
		t.Errorf("%+v", e)
	}
	if e := Refined(&Error{Kind: KindRecentlyDeleted, RetryAfter: time.Second, Message: "60 seconds"}); e.RetryAfter != time.Second {
		t.Errorf("the service's own hint has become %s", e.RetryAfter)
	}
	if e := Refined(&Error{Kind: KindFailed, Code: "OperationAborted"}); e.RetryAfter != 0 {
		t.Errorf("a hint was made up: %s", e.RetryAfter)
	}
}

func TestAProtectedResourceTellsWhatToDoFirst(t *testing.T) {
	e := Refined(&Error{Kind: KindInvalid, Message: "Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first."})
	if !IsProtected(e) || Retryable(e) || !strings.Contains(e.Message, "deletion protection first: turn the protection off in the template") {
		t.Errorf("%+v", e)
	}
	said := e.Message
	if again := Refined(e); again.Message != said {
		t.Errorf("it is said twice: %s", e.Message)
	}
}
