package sandbox

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudcontrol"
	cctypes "github.com/aws/aws-sdk-go-v2/service/cloudcontrol/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/slipway-cdk/slipway/pkg/clock"
)

var bg = context.Background()

func (b *bench) start(typeName, model, token string) (*cctypes.ProgressEvent, error) {
	in := &cloudcontrol.CreateResourceInput{TypeName: &typeName, DesiredState: &model}
	if token != "" {
		in.ClientToken = &token
	}
	out, err := b.cc.CreateResource(bg, in)
	if err != nil {
		return nil, err
	}
	return out.ProgressEvent, nil
}

func TestAnInstantOperationIsOverAtTheFirstStatus(t *testing.T) {
	b := newBench(t, Options{})
	e, err := b.start("AWS::SQS::Queue", `{"QueueName":"q","DelaySeconds":5}`, "")
	if err != nil {
		t.Fatal(err)
	}
	if e.OperationStatus != cctypes.OperationStatusInProgress || e.Identifier != nil || !e.EventTime.Equal(start) {
		t.Errorf("the first event is %s with identifier %v at %v", e.OperationStatus, e.Identifier, e.EventTime)
	}
	e = b.wait(e.RequestToken)
	if e.OperationStatus != cctypes.OperationStatusSuccess || e.Operation != cctypes.OperationCreate ||
		*e.Identifier != "https://sqs.us-east-1.amazonaws.com/123456789012/q" {
		t.Errorf("the second event is %+v", e)
	}
	if m := aws.ToString(e.ResourceModel); !strings.Contains(m, `"Arn":"arn:aws:sqs:us-east-1:123456789012:q"`) || !strings.Contains(m, `"DelaySeconds":5`) {
		t.Errorf("the model is %s", m)
	}
}

func TestAClientTokenReplaysItsRequestFor36Hours(t *testing.T) {
	b := newBench(t, Options{})
	first, err := b.start("AWS::SQS::Queue", `{"QueueName":"q"}`, "t1")
	if err != nil {
		t.Fatal(err)
	}
	// The same JSON in another spelling is the same request.
	again, err := b.start("AWS::SQS::Queue", `{ "QueueName" : "q" }`, "t1")
	if err != nil || *again.RequestToken != *first.RequestToken || again.OperationStatus != cctypes.OperationStatusSuccess {
		t.Fatalf("the replay is %+v, %v", again, err)
	}
	// A failure is replayed too, even when the cause is gone.
	failed, err := b.start("AWS::SQS::Queue", `{"QueueName":"q"}`, "t2")
	if err != nil {
		t.Fatal(err)
	}
	b.delete("AWS::SQS::Queue", *again.Identifier)
	again, err = b.start("AWS::SQS::Queue", `{"QueueName":"q"}`, "t2")
	if err != nil || *again.RequestToken != *failed.RequestToken || again.ErrorCode != cctypes.HandlerErrorCodeAlreadyExists {
		t.Fatalf("the replayed failure is %+v, %v", again, err)
	}
	if _, err := b.cc.DeleteResource(bg, &cloudcontrol.DeleteResourceInput{TypeName: aws.String("AWS::SQS::Queue"), Identifier: aws.String("x"), ClientToken: aws.String("t2")}); codeOf(err) != codeTokenConflict {
		t.Errorf("another operation with the token: %v", err)
	}
	b.clock.Advance(tokenLife - time.Millisecond)
	if again, err = b.start("AWS::SQS::Queue", `{"QueueName":"q"}`, "t2"); err != nil || *again.RequestToken != *failed.RequestToken {
		t.Errorf("just before 36 hours: %+v, %v", again, err)
	}
	b.clock.Advance(time.Millisecond)
	fresh, err := b.start("AWS::SQS::Queue", `{"QueueName":"q"}`, "t2")
	if err != nil || *fresh.RequestToken == *failed.RequestToken {
		t.Fatalf("after 36 hours: %+v, %v", fresh, err)
	}
	if e := b.wait(fresh.RequestToken); e.OperationStatus != cctypes.OperationStatusSuccess {
		t.Errorf("the new request: %+v", e)
	}
	if e := b.wait(failed.RequestToken); e.OperationStatus != cctypes.OperationStatusFailed {
		t.Errorf("the old request is no longer known by its own token: %+v", e)
	}
	b.clock.Advance(requestLife)
	if _, err := b.start("AWS::SQS::Queue", `{}`, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := b.cc.GetResourceRequestStatus(bg, &cloudcontrol.GetResourceRequestStatusInput{RequestToken: failed.RequestToken}); codeOf(err) != codeRequestNotFound {
		t.Errorf("the request after a week: %v", err)
	}
}

func TestSlowOperationsTakeTheirTimeOnTheClock(t *testing.T) {
	b := newBench(t, Options{Speed: 1})
	vpc, err := b.start("AWS::EC2::VPC", `{"CidrBlock":"10.0.0.0/16"}`, "")
	if err != nil {
		t.Fatal(err)
	}
	e := b.wait(vpc.RequestToken)
	if e.OperationStatus != cctypes.OperationStatusInProgress || e.RetryAfter == nil || e.Identifier == nil {
		t.Fatalf("at once: %+v", e)
	}
	id := *e.Identifier
	if _, err := b.get("AWS::EC2::VPC", id); codeOf(err) != codeNotFound {
		t.Errorf("it can be read while it is made: %v", err)
	}
	if _, err := b.update("AWS::EC2::VPC", id, `[]`); codeOf(err) != codeConcurrent {
		t.Errorf("an update while it is made: %v", err)
	}
	// The table says 16.2 s at the median and 22.2 s for nine of ten.
	b.clock.Advance(16 * time.Second)
	if e := b.wait(vpc.RequestToken); e.OperationStatus != cctypes.OperationStatusInProgress {
		t.Errorf("after 16 s: %s", e.OperationStatus)
	}
	b.clock.Advance(7 * time.Second)
	if e := b.wait(vpc.RequestToken); e.OperationStatus != cctypes.OperationStatusSuccess {
		t.Fatalf("after 23 s: %s", e.OperationStatus)
	}
	if _, err := b.update("AWS::EC2::VPC", id, `[{"op":"add","path":"/EnableDnsHostnames","value":true}]`); err != nil {
		t.Fatal(err)
	}
	if m, err := b.get("AWS::EC2::VPC", id); err != nil || m["EnableDnsHostnames"] != nil {
		t.Errorf("the update shows before it is over: %v, %v", m, err)
	}
	if _, err := b.cc.DeleteResource(bg, &cloudcontrol.DeleteResourceInput{TypeName: aws.String("AWS::EC2::VPC"), Identifier: &id}); codeOf(err) != codeConcurrent {
		t.Errorf("a delete during an update: %v", err)
	}
	b.clock.Advance(time.Minute)
	if m, err := b.get("AWS::EC2::VPC", id); err != nil || m["EnableDnsHostnames"] != true {
		t.Errorf("after the update: %v, %v", m, err)
	}
	if e := b.delete("AWS::EC2::VPC", id); e.OperationStatus != cctypes.OperationStatusInProgress {
		t.Errorf("the delete is %s", e.OperationStatus)
	}
	if _, err := b.get("AWS::EC2::VPC", id); err != nil {
		t.Errorf("gone before the delete is over: %v", err)
	}
	b.clock.Advance(time.Minute)
	if _, err := b.get("AWS::EC2::VPC", id); codeOf(err) != codeNotFound {
		t.Errorf("after the delete: %v", err)
	}
}

func TestACancelledOperationHasNoEffect(t *testing.T) {
	b := newBench(t, Options{Speed: 1})
	cancel := func(token *string) {
		t.Helper()
		out, err := b.cc.CancelResourceRequest(bg, &cloudcontrol.CancelResourceRequestInput{RequestToken: token})
		if err != nil || out.ProgressEvent.OperationStatus != cctypes.OperationStatusCancelComplete {
			t.Fatalf("cancelling: %+v, %v", out, err)
		}
		if e := b.wait(token); e.OperationStatus != cctypes.OperationStatusCancelComplete {
			t.Errorf("afterwards it is %s", e.OperationStatus)
		}
	}
	e, err := b.start("AWS::SQS::Queue", `{"QueueName":"q"}`, "")
	if err != nil {
		t.Fatal(err)
	}
	cancel(e.RequestToken)
	if e, err = b.start("AWS::SQS::Queue", `{"QueueName":"q"}`, ""); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(time.Hour)
	id := *b.wait(e.RequestToken).Identifier
	if e, err = b.update("AWS::SQS::Queue", id, `[{"op":"add","path":"/DelaySeconds","value":9}]`); err != nil {
		t.Fatal(err)
	}
	cancel(e.RequestToken)
	cancel(b.delete("AWS::SQS::Queue", id).RequestToken)
	b.clock.Advance(time.Hour)
	if m, err := b.get("AWS::SQS::Queue", id); err != nil || m["DelaySeconds"] != nil {
		t.Errorf("the queue after both were cancelled: %v, %v", m, err)
	}
}

func TestWriteOnlyPropertiesAreNeverReadAndLostUnlessSentAgain(t *testing.T) {
	b := newBench(t, Options{})
	id, m := b.mustCreate("AWS::SecretsManager::Secret", `{"Name":"s","SecretString":"hidden"}`)
	if strings.Contains(encode(m), "hidden") {
		t.Error("the event shows a write-only property")
	}
	if m, err := b.get("AWS::SecretsManager::Secret", id); err != nil || strings.Contains(encode(m), "hidden") {
		t.Errorf("a read shows a write-only property: %v, %v", m, err)
	}
	list, err := b.s.List(bg, Filter{})
	if err != nil || strings.Contains(encode(list), "hidden") {
		t.Errorf("the list shows a write-only property: %v", err)
	}
	if e, err := b.update("AWS::SecretsManager::Secret", id, `[{"op":"add","path":"/SecretString","value":"new"}]`); err != nil || e.OperationStatus != cctypes.OperationStatusSuccess {
		t.Errorf("sending a write-only property again: %v, %v", e, err)
	}
}

func TestListsComeInPages(t *testing.T) {
	b := newBench(t, Options{})
	for i := range 25 {
		b.mustCreate("AWS::SQS::Queue", fmt.Sprintf(`{"QueueName":"q%02d"}`, i))
	}
	seen := map[string]bool{}
	pages := cloudcontrol.NewListResourcesPaginator(b.cc, &cloudcontrol.ListResourcesInput{TypeName: aws.String("AWS::SQS::Queue"), MaxResults: aws.Int32(10)})
	n := 0
	for pages.HasMorePages() {
		page, err := pages.NextPage(bg)
		if err != nil {
			t.Fatal(err)
		}
		n++
		for _, r := range page.ResourceDescriptions {
			seen[*r.Identifier] = true
		}
	}
	if n != 3 || len(seen) != 25 {
		t.Errorf("%d pages with %d queues", n, len(seen))
	}
	requests := cloudcontrol.NewListResourceRequestsPaginator(b.cc, &cloudcontrol.ListResourceRequestsInput{MaxResults: aws.Int32(20),
		ResourceRequestStatusFilter: &cctypes.ResourceRequestStatusFilter{OperationStatuses: []cctypes.OperationStatus{"SUCCESS"}, Operations: []cctypes.Operation{"CREATE"}}})
	count := 0
	for requests.HasMorePages() {
		page, err := requests.NextPage(bg)
		if err != nil {
			t.Fatal(err)
		}
		count += len(page.ResourceRequestStatusSummaries)
	}
	if count != 25 {
		t.Errorf("%d requests are listed", count)
	}
}

func TestSTSAnswersWithTheAccountOfTheCredentials(t *testing.T) {
	b := newBench(t, Options{})
	for _, c := range []struct{ key, region, account, arn string }{
		{"AKIAIOSFODNN7EXAMPLE", "us-east-1", "123456789012", "arn:aws:iam::123456789012:user/sandbox"},
		{"222222222222", "cn-north-1", "222222222222", "arn:aws-cn:iam::222222222222:user/sandbox"},
	} {
		client := sts.New(sts.Options{Region: c.region, BaseEndpoint: &b.url, Credentials: credentials.NewStaticCredentialsProvider(c.key, "s", "")})
		out, err := client.GetCallerIdentity(bg, &sts.GetCallerIdentityInput{})
		if err != nil || *out.Account != c.account || *out.Arn != c.arn {
			t.Errorf("%s: %+v, %v", c.key, out, err)
		}
	}
	client := sts.New(sts.Options{Region: "us-east-1", BaseEndpoint: &b.url, Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""), Retryer: aws.NopRetryer{}})
	if _, err := client.GetSessionToken(bg, &sts.GetSessionTokenInput{}); codeOf(err) != "InvalidAction" {
		t.Errorf("another action: %v", err)
	}
	if n := b.s.Calls()["GetCallerIdentity"]; n != 2 {
		t.Errorf("%d calls were counted", n)
	}
}

func TestTheDirectAPIServesWhatCloudControlDoesNot(t *testing.T) {
	b := newBench(t, Options{})
	c := b.direct()
	e, err := c.Create(bg, "AWS::IAM::Policy", "", map[string]any{"PolicyName": "p", "PolicyDocument": map[string]any{"Version": "2012-10-17"}, "Roles": []any{"r"}}, "tok")
	if err != nil || e.OperationStatus != statusInProgress {
		t.Fatalf("%+v, %v", e, err)
	}
	if e, err = c.Status(bg, e.RequestToken); err != nil || e.OperationStatus != statusSuccess || e.Identifier == "" {
		t.Fatalf("%+v, %v", e, err)
	}
	id := e.Identifier
	if again, err := c.Create(bg, "AWS::IAM::Policy", "", map[string]any{"PolicyName": "p", "PolicyDocument": map[string]any{"Version": "2012-10-17"}, "Roles": []any{"r"}}, "tok"); err != nil || again.RequestToken != e.RequestToken {
		t.Errorf("the replay: %+v, %v", again, err)
	}
	if e, err = c.Update(bg, "AWS::IAM::Policy", id, nil, map[string]any{"PolicyName": "p", "PolicyDocument": map[string]any{}}, ""); err != nil {
		t.Fatal(err)
	}
	r, err := c.Get(bg, "AWS::IAM::Policy", id, nil)
	if err != nil || r.Properties["Roles"] != nil || id != "p" || r.Attributes["Id"] != id {
		t.Errorf("after the update: %+v, %v", r, err)
	}
	if e, err = c.Delete(bg, "AWS::IAM::Policy", id, nil, ""); err != nil {
		t.Fatal(err)
	}
	if e, err = c.Status(bg, e.RequestToken); err != nil || e.OperationStatus != statusSuccess {
		t.Errorf("%+v, %v", e, err)
	}
	for _, typeName := range []string{"AWS::CloudFormation::WaitConditionHandle", "AWS::CDK::Metadata"} {
		if e, err = c.Create(bg, typeName, "", map[string]any{}, ""); err != nil {
			t.Fatal(err)
		}
		if e, err = c.Status(bg, e.RequestToken); err != nil || e.Identifier == "" {
			t.Errorf("%s: %+v, %v", typeName, e, err)
		}
	}
}

func TestACustomResourceLivesLikeAnyOther(t *testing.T) {
	b := newBench(t, Options{})
	c := b.direct()
	b.mustCreate("AWS::IAM::Role", `{"RoleName":"r","AssumeRolePolicyDocument":{}}`)
	fn, m := b.mustCreate("AWS::Lambda::Function", strings.Replace(lambdaModel, "ROLE", "arn:aws:iam::123456789012:role/r", 1))
	event := CustomResourceEvent{RequestType: "Create", RequestID: "1", ServiceToken: m["Arn"].(string), LogicalResourceID: "L", ResourceType: "Custom::Thing",
		ResourceProperties: map[string]any{"A": "x"}, WantAttributes: []string{"Name", "RoleArn"}}
	first, err := c.InvokeCustomResource(bg, event)
	if err != nil || first.Status != statusSuccess || !strings.HasPrefix(first.Data["RoleArn"].(string), "arn:aws:") || first.Data["Name"] == "" {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := c.InvokeCustomResource(bg, event); err != nil || again.PhysicalResourceID != first.PhysicalResourceID {
		t.Errorf("the same request: %+v, %v", again, err)
	}
	if list, err := b.s.List(bg, Filter{Type: "Custom::Thing"}); err != nil || len(list) != 1 || list[0].Properties["A"] != "x" {
		t.Errorf("listed: %+v, %v", list, err)
	}
	if e := b.delete("AWS::Lambda::Function", fn); e.ErrorCode != cctypes.HandlerErrorCodeResourceConflict {
		t.Errorf("its function can be deleted: %v", e.ErrorCode)
	}
	update := event
	update.RequestType, update.RequestID, update.PhysicalResourceID, update.ResourceProperties = "Update", "2", first.PhysicalResourceID, map[string]any{"A": "y"}
	if second, err := c.InvokeCustomResource(bg, update); err != nil || second.Data["Name"] != first.Data["Name"] || second.PhysicalResourceID != first.PhysicalResourceID {
		t.Errorf("updated: %+v, %v", second, err)
	}
	remove := update
	remove.RequestType, remove.RequestID = "Delete", "3"
	for _, id := range []string{"3", "4"} { // the second delete finds nothing and succeeds
		remove.RequestID = id
		if r, err := c.InvokeCustomResource(bg, remove); err != nil || r.Status != statusSuccess {
			t.Errorf("deleted: %+v, %v", r, err)
		}
	}
	b.delete("AWS::Lambda::Function", fn)
	event.RequestID = "5"
	if r, err := c.InvokeCustomResource(bg, event); err != nil || r.Status != "FAILED" || r.Reason == "" {
		t.Errorf("with its function gone: %+v, %v", r, err)
	}
}

func TestACustomResourceHandlerTakesItsTime(t *testing.T) {
	fake := clock.NewFake(start)
	fake.AutoAdvance = true
	b := newBench(t, Options{Speed: 2, Clock: fake})
	if _, err := b.direct().InvokeCustomResource(bg, CustomResourceEvent{RequestType: "Create", RequestID: "1", ServiceToken: "t", LogicalResourceID: "L", ResourceType: "Custom::T"}); err != nil {
		t.Fatal(err)
	}
	// 2.6 to 10.6 seconds, twice as fast.
	if d := fake.Now().Sub(start); d < 1300*time.Millisecond || d > 5300*time.Millisecond {
		t.Errorf("it took %v", d)
	}
}

func TestAnUpdateDoesNotLookAtOldReferencesAgain(t *testing.T) {
	b := newBench(t, Options{})
	key, m := b.mustCreate("AWS::KMS::Key", `{"KeyPolicy":{}}`)
	queue, _ := b.mustCreate("AWS::SNS::Topic", `{"TopicName":"t","KmsMasterKeyId":"`+m["Arn"].(string)+`"}`)
	if e := b.delete("AWS::KMS::Key", key); e.OperationStatus != cctypes.OperationStatusSuccess {
		t.Fatalf("AWS lets a key go that an optional property names: %s", e.ErrorCode)
	}
	if e, err := b.update("AWS::SNS::Topic", queue, `[{"op":"add","path":"/DisplayName","value":"d"}]`); err != nil || e.OperationStatus != cctypes.OperationStatusSuccess {
		t.Errorf("%+v, %v", e, err)
	}
	if e := b.create("AWS::SNS::Topic", `{"KmsMasterKeyId":"`+m["Arn"].(string)+`"}`); e.ErrorCode != cctypes.HandlerErrorCodeInvalidRequest {
		t.Errorf("a new reference to the key: %q", e.ErrorCode)
	}
}

func TestASandboxSurvivesItsProcess(t *testing.T) {
	dir := t.TempDir()
	fake := clock.NewFake(start)
	b := openBench(t, dir, Options{Clock: fake})
	id, _ := b.mustCreate("AWS::SQS::Queue", `{"QueueName":"q"}`)
	token, err := b.start("AWS::SNS::Topic", `{"TopicName":"t"}`, "tok")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.s.Close(); err != nil {
		t.Fatal(err)
	}
	b = openBench(t, dir, Options{Clock: fake, Seed: 8})
	if _, err := b.get("AWS::SQS::Queue", id); err != nil {
		t.Error(err)
	}
	if again, err := b.start("AWS::SNS::Topic", `{"TopicName":"t"}`, "tok"); err != nil || *again.RequestToken != *token.RequestToken {
		t.Errorf("the token is forgotten: %+v, %v", again, err)
	}
	if err := b.s.Reset(bg); err != nil {
		t.Fatal(err)
	}
	if list, err := b.s.List(bg, Filter{}); err != nil || len(list) != 0 {
		t.Errorf("after a reset: %v, %v", list, err)
	}
}

func TestTwoHandlesOnOneDirectoryShareOneWorld(t *testing.T) {
	dir := t.TempDir()
	a, b := openBench(t, dir, Options{Seed: 1}), openBench(t, dir, Options{Seed: 2})
	const each = 40
	var wg sync.WaitGroup
	won := make(chan string, 2*each)
	for i := range each {
		for _, side := range []*bench{a, b} {
			wg.Add(1)
			go func() {
				defer wg.Done()
				e, err := side.start("AWS::SQS::Queue", fmt.Sprintf(`{"QueueName":"q%d"}`, i), "")
				if err != nil {
					t.Error(err)
					return
				}
				if e := side.wait(e.RequestToken); e.OperationStatus == cctypes.OperationStatusSuccess {
					won <- *e.Identifier
				} else if e.ErrorCode != cctypes.HandlerErrorCodeAlreadyExists {
					t.Error(e.ErrorCode)
				}
			}()
		}
	}
	wg.Wait()
	close(won)
	seen := map[string]bool{}
	for id := range won {
		if seen[id] {
			t.Errorf("two handles made %s", id)
		}
		seen[id] = true
	}
	if list, err := a.s.List(bg, Filter{}); err != nil || len(list) != each || len(seen) != each {
		t.Errorf("%d of %d queues, %d winners, %v", len(list), each, len(seen), err)
	}
}

func TestOneSeedMakesOneWorld(t *testing.T) {
	var ids [2]string
	for i := range ids {
		ids[i], _ = newBench(t, Options{Seed: 99}).mustCreate("AWS::EC2::VPC", `{"CidrBlock":"10.0.0.0/16"}`)
	}
	if ids[0] != ids[1] {
		t.Errorf("one seed made %s and %s", ids[0], ids[1])
	}
}

func BenchmarkCreate(b *testing.B) {
	w := newBench(b, Options{Clock: clock.Real{}})
	w.cc = cloudcontrol.New(w.cc.Options(), func(o *cloudcontrol.Options) { o.Retryer = aws.NopRetryer{} })
	b.SetParallelism(20)
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := w.start("AWS::SQS::Queue", `{"DelaySeconds":5}`, ""); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "creates/s")
}
