package calls

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudcontrol"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	ststypes "github.com/aws/aws-sdk-go-v2/service/sts/types"
)

// nothing answers every request with a status and nothing else.
type nothing int

func (n nothing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	return &http.Response{StatusCode: int(n), Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: r, ProtoMajor: 1, ProtoMinor: 1}, nil
}

func TestEveryRequestOfTheSDKIsKnown(t *testing.T) {
	ctx := context.Background()
	str := aws.String
	item := func(pk string) map[string]ddb.AttributeValue {
		return map[string]ddb.AttributeValue{"pk": &ddb.AttributeValueMemberS{Value: pk}, "sk": &ddb.AttributeValueMemberS{Value: "s"}}
	}
	values := map[string]ddb.AttributeValue{":pk": &ddb.AttributeValueMemberS{Value: "run#r"}, ":s": &ddb.AttributeValueMemberS{Value: "op"}}
	const tableARN = "arn:aws:dynamodb:eu-west-1:111122223333:table/t"
	const key = "arn:aws:kms:eu-west-1:111122223333:key/k"
	for _, c := range []struct {
		status int
		make   func(cfg aws.Config)
		want   []string // "action resource" and, where there are conditions, their values
	}{
		{200, func(cfg aws.Config) {
			_, _ = s3.NewFromConfig(cfg).GetObject(ctx, &s3.GetObjectInput{Bucket: str("b"), Key: str("a/k"), ExpectedBucketOwner: str("2")})
		},
			[]string{"s3:GetObject arn:aws:s3:::b/a/k aws:ResourceAccount=2"}},
		{404, func(cfg aws.Config) {
			_, _ = s3.NewFromConfig(cfg).HeadObject(ctx, &s3.HeadObjectInput{Bucket: str("b"), Key: str("k")})
		},
			[]string{"s3:GetObject arn:aws:s3:::b/k aws:ResourceAccount=111122223333", "s3:ListBucket arn:aws:s3:::b aws:ResourceAccount=111122223333"}},
		{200, func(cfg aws.Config) {
			_, _ = s3.NewFromConfig(cfg).GetObject(ctx, &s3.GetObjectInput{Bucket: str("b"), Key: str("k"), VersionId: str("v")})
		},
			[]string{"s3:GetObjectVersion arn:aws:s3:::b/k aws:ResourceAccount=111122223333"}},
		{200, func(cfg aws.Config) {
			_, _ = s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true }).PutObject(ctx, &s3.PutObjectInput{Bucket: str("b"), Key: str("k"), Body: bytes.NewReader([]byte("x"))})
		},
			[]string{"s3:PutObject arn:aws:s3:::b/k aws:ResourceAccount=111122223333"}},
		{200, func(cfg aws.Config) {
			_, _ = s3.NewFromConfig(cfg).DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: str("b"), Key: str("k")})
		},
			[]string{"s3:DeleteObject arn:aws:s3:::b/k aws:ResourceAccount=111122223333"}},
		{200, func(cfg aws.Config) {
			_, _ = s3.NewFromConfig(cfg).DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: str("b"), Key: str("k"), VersionId: str("v")})
		},
			[]string{"s3:DeleteObjectVersion arn:aws:s3:::b/k aws:ResourceAccount=111122223333"}},
		{200, func(cfg aws.Config) {
			_, _ = s3.NewFromConfig(cfg).DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: str("b"), Delete: &s3types.Delete{Objects: []s3types.ObjectIdentifier{{Key: str("k")}, {Key: str("l"), VersionId: str("v")}}}})
		},
			[]string{"s3:DeleteObject arn:aws:s3:::b/k aws:ResourceAccount=111122223333", "s3:DeleteObjectVersion arn:aws:s3:::b/l aws:ResourceAccount=111122223333"}},
		{404, func(cfg aws.Config) {
			_, _ = s3.NewFromConfig(cfg).ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: str("b"), Prefix: str("p/")})
		},
			[]string{"s3:ListBucket arn:aws:s3:::b aws:ResourceAccount=111122223333 s3:prefix=p/"}},
		{200, func(cfg aws.Config) {
			_, _ = s3.NewFromConfig(cfg).HeadBucket(ctx, &s3.HeadBucketInput{Bucket: str("b")})
		},
			[]string{"s3:ListBucket arn:aws:s3:::b aws:ResourceAccount=111122223333"}},
		{200, func(cfg aws.Config) {
			c := s3.NewFromConfig(cfg)
			_, _ = c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: str("b"), Key: str("k")})
			_, _ = c.UploadPart(ctx, &s3.UploadPartInput{Bucket: str("b"), Key: str("k"), UploadId: str("u"), PartNumber: aws.Int32(1), Body: bytes.NewReader(nil)})
			_, _ = c.ListParts(ctx, &s3.ListPartsInput{Bucket: str("b"), Key: str("k"), UploadId: str("u")})
			_, _ = c.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: str("b"), Key: str("k"), UploadId: str("u")})
			_, _ = c.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{Bucket: str("b"), Key: str("k"), UploadId: str("u")})
			_, _ = c.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: str("b")})
		}, []string{"s3:AbortMultipartUpload arn:aws:s3:::b/k aws:ResourceAccount=111122223333", "s3:ListBucketMultipartUploads arn:aws:s3:::b aws:ResourceAccount=111122223333",
			"s3:ListMultipartUploadParts arn:aws:s3:::b/k aws:ResourceAccount=111122223333", "s3:PutObject arn:aws:s3:::b/k aws:ResourceAccount=111122223333"}},
		{200, func(cfg aws.Config) {
			c := s3.NewFromConfig(cfg)
			_, _ = c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: str("b")})
			_, _ = c.PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: str("b"), Policy: str("{}")})
			_, _ = c.GetBucketLifecycleConfiguration(ctx, &s3.GetBucketLifecycleConfigurationInput{Bucket: str("b")})
			_, _ = c.GetBucketEncryption(ctx, &s3.GetBucketEncryptionInput{Bucket: str("b")})
			_, _ = c.GetPublicAccessBlock(ctx, &s3.GetPublicAccessBlockInput{Bucket: str("b")})
			_, _ = c.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: str("b")})
		}, []string{"s3:CreateBucket arn:aws:s3:::b aws:ResourceAccount=111122223333", "s3:DeleteBucket arn:aws:s3:::b aws:ResourceAccount=111122223333",
			"s3:GetBucketPublicAccessBlock arn:aws:s3:::b aws:ResourceAccount=111122223333", "s3:GetEncryptionConfiguration arn:aws:s3:::b aws:ResourceAccount=111122223333",
			"s3:GetLifecycleConfiguration arn:aws:s3:::b aws:ResourceAccount=111122223333", "s3:PutBucketPolicy arn:aws:s3:::b aws:ResourceAccount=111122223333"}},
		{200, func(cfg aws.Config) {
			c := dynamodb.NewFromConfig(cfg)
			_, _ = c.GetItem(ctx, &dynamodb.GetItemInput{TableName: str("t"), Key: item("run#r")})
			_, _ = c.PutItem(ctx, &dynamodb.PutItemInput{TableName: str("t"), Item: item("run#r")})
			_, _ = c.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: str("t"), Key: item("run#r")})
		}, []string{"dynamodb:GetItem " + tableARN + " dynamodb:LeadingKeys=run#r", "dynamodb:PutItem " + tableARN + " dynamodb:LeadingKeys=run#r", "dynamodb:UpdateItem " + tableARN + " dynamodb:LeadingKeys=run#r"}},
		{200, func(cfg aws.Config) {
			_, _ = dynamodb.NewFromConfig(cfg).Query(ctx, &dynamodb.QueryInput{TableName: str("t"), IndexName: str("i"), KeyConditionExpression: str("pk = :pk AND sk > :s"), ExpressionAttributeValues: values})
		}, []string{"dynamodb:Query " + tableARN + "/index/i dynamodb:LeadingKeys=run#r"}},
		{200, func(cfg aws.Config) {
			_, _ = dynamodb.NewFromConfig(cfg).BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]ddb.KeysAndAttributes{"t": {Keys: []map[string]ddb.AttributeValue{item("b"), item("a")}}}})
		}, []string{"dynamodb:BatchGetItem " + tableARN + " dynamodb:LeadingKeys=a,b"}},
		{200, func(cfg aws.Config) {
			_, _ = dynamodb.NewFromConfig(cfg).TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []ddb.TransactWriteItem{
				{ConditionCheck: &ddb.ConditionCheck{TableName: str("t"), Key: item("run#r"), ConditionExpression: str("x")}}, {Put: &ddb.Put{TableName: str("t"), Item: item("ops#r")}},
			}})
		}, []string{"dynamodb:ConditionCheckItem " + tableARN + " dynamodb:LeadingKeys=run#r", "dynamodb:PutItem " + tableARN + " dynamodb:LeadingKeys=ops#r"}},
		{200, func(cfg aws.Config) {
			_, _ = kms.NewFromConfig(cfg).GenerateDataKey(ctx, &kms.GenerateDataKeyInput{KeyId: str(key), KeySpec: kmstypes.DataKeySpecAes256})
			_, _ = kms.NewFromConfig(cfg).Decrypt(ctx, &kms.DecryptInput{KeyId: str("k"), CiphertextBlob: []byte{1}})
		}, []string{"kms:Decrypt " + key, "kms:GenerateDataKey " + key}},
		{200, func(cfg aws.Config) {
			c := sfn.NewFromConfig(cfg)
			_, _ = c.StartExecution(ctx, &sfn.StartExecutionInput{StateMachineArn: str("arn:m")})
			_, _ = c.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: str("arn:e")})
		}, []string{"states:DescribeExecution arn:e", "states:StartExecution arn:m"}},
		{200, func(cfg aws.Config) {
			_, _ = ssm.NewFromConfig(cfg).GetParameter(ctx, &ssm.GetParameterInput{Name: str("/slipway/control-plane")})
			_, _ = ssm.NewFromConfig(cfg).GetParameter(ctx, &ssm.GetParameterInput{Name: str("/aws/service/ami")})
		}, []string{"ssm:GetParameter arn:aws:ssm:eu-west-1:111122223333:parameter/slipway/control-plane", "ssm:GetParameter arn:aws:ssm:eu-west-1::parameter/aws/service/ami"}},
		{200, func(cfg aws.Config) {
			_, _ = secretsmanager.NewFromConfig(cfg).GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: str("arn:s")})
		},
			[]string{"secretsmanager:GetSecretValue arn:s"}},
		{200, func(cfg aws.Config) {
			_, _ = cloudcontrol.NewFromConfig(cfg).GetResource(ctx, &cloudcontrol.GetResourceInput{TypeName: str("A::B::C"), Identifier: str("i")})
		},
			[]string{"cloudformation:GetResource *"}},
		{200, func(cfg aws.Config) {
			_, _ = sts.NewFromConfig(cfg).AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: str("arn:r"), RoleSessionName: str("s"), Tags: []ststypes.Tag{{Key: str("k"), Value: str("v")}}})
			_, _ = sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		}, []string{"sts:AssumeRole arn:r", "sts:TagSession arn:r"}},
		{200, func(cfg aws.Config) {
			_, _ = ec2.NewFromConfig(cfg).DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{})
		},
			[]string{"ec2:DescribeAvailabilityZones *"}},
		{200, func(cfg aws.Config) {
			c := cloudformation.NewFromConfig(cfg)
			_, _ = c.CreateChangeSet(ctx, &cloudformation.CreateChangeSetInput{StackName: str("s"), ChangeSetName: str("c")})
			_, _ = c.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: str("s")})
		}, []string{
			"cloudformation:CreateChangeSet arn:aws:cloudformation:eu-west-1:111122223333:stack/s/*", "cloudformation:DeleteStack arn:aws:cloudformation:eu-west-1:111122223333:stack/s/*",
		}},
		{200, func(cfg aws.Config) {
			_, _ = lambda.NewFromConfig(cfg).Invoke(ctx, &lambda.InvokeInput{FunctionName: str("f")})
		},
			[]string{"lambda:InvokeFunction arn:aws:lambda:eu-west-1:111122223333:function:f"}},
		{200, func(cfg aws.Config) { _, _ = iam.NewFromConfig(cfg).ListRoles(ctx, &iam.ListRolesInput{}) }, nil},
	} {
		r := &Recorder{Next: nothing(c.status), Principals: map[string]string{"AKID": "planner"}, Place: Place{Account: "111122223333"}}
		cfg := aws.Config{
			Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "s", ""), HTTPClient: &http.Client{Transport: r},
			Retryer: func() aws.Retryer { return aws.NopRetryer{} },
		}
		c.make(cfg)
		got, err := r.Calls()
		if (err != nil) != (c.want == nil) {
			t.Errorf("%v: %v", c.want, err)
		}
		var texts []string
		for _, rec := range got {
			line := rec.Action + " " + rec.Resource
			for _, k := range []string{"aws:ResourceAccount", "s3:prefix", leadingKeys} {
				if v := rec.Context[k]; v != nil {
					line += " " + k + "=" + strings.Join(v, ",")
				}
			}
			texts = append(texts, line)
			if rec.Principal != "planner" {
				t.Errorf("the principal is %s", rec.Principal)
			}
		}
		slices.Sort(texts)
		if !slices.Equal(texts, c.want) {
			t.Errorf("the calls are\n%s\nwant\n%s", strings.Join(texts, "\n"), strings.Join(c.want, "\n"))
		}
		// A role that was assumed is somebody else.
		cfg.Credentials = credentials.NewStaticCredentialsProvider("ASIA", "s", "t")
		c.make(cfg)
		if again, err := r.Calls(); len(again) != len(got) || (err == nil) != (c.want != nil) {
			t.Errorf("calls of others are noted: %v, %v", again, err)
		}
	}
}

func TestRecordingsAreTheSameWhateverTheRun(t *testing.T) {
	r := &Recorder{Principals: map[string]string{}}
	for _, key := range []string{
		"slipway/runs/20261129T213124236Z-9d519276/waves/1.json", "slipway/runs/20261129T213124999Z-00000000/waves/12.json",
		"slipway/templates/e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855.json",
	} {
		c := call("s3:GetObject", "arn:aws:s3:::b/"+key)
		c[0].Context = map[string][]string{leadingKeys: {"run#20261129T213124999Z-00000000", "run#20261129T213124236Z-9d519276"}}
		r.note("planner", c, nil)
	}
	got, err := r.Calls()
	if err != nil || len(got) != 2 || len(got[0].Context[leadingKeys]) != 1 {
		t.Fatalf("%v: %v", got, err)
	}
	var file bytes.Buffer
	if err := Write(&file, got); err != nil {
		t.Fatal(err)
	}
	again, err := Read(bytes.NewReader(file.Bytes()), bytes.NewReader(file.Bytes()))
	if err != nil || len(again) != 2 || again[0].Resource != got[0].Resource || again[0].Principal != "planner" {
		t.Errorf("%v: %v", again, err)
	}
	if _, err := Read(strings.NewReader("{")); err == nil {
		t.Error("half a line is read")
	}
}
