package cloudcontrol_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/cloudcontrol"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
)

// BenchmarkCreate makes queues through the whole path (provider, AWS client, HTTP, sandbox), 40 at once, as a run
// does; each is a create, a poll and a read.
func BenchmarkCreate(b *testing.B) {
	endpoint := serve(b, sandbox.Options{})
	p := open(endpoint, clock.Real{})
	ctx := context.Background()
	var n atomic.Int64
	b.SetParallelism(40)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			token := "t" + strconv.FormatInt(n.Add(1), 10)
			req := provider.Request{
				Account: account, Region: region, Type: "AWS::SQS::Queue", LogicalID: "Queue", Token: token,
				Properties: map[string]any{"QueueName": token, "DelaySeconds": "5"},
			}
			progress, err := p.Create(ctx, req)
			for err == nil && !progress.Done {
				progress, err = p.Poll(ctx, req, *progress.Handle)
			}
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "creates/s")
}

func BenchmarkCoerceLambdaFunction(b *testing.B) {
	model := props(b, `{"FunctionName":"work","Role":"arn:aws:iam::123456789012:role/r","Runtime":"nodejs22.x","Handler":"index.handler","Timeout":"30","MemorySize":128,
		"Code":{"S3Bucket":"assets","S3Key":"0123456789abcdef.zip"},"Environment":{"Variables":{"LIMIT":10,"DEBUG":true,"TABLE":"things","QUEUE":"https://sqs.eu-west-1.amazonaws.com/123456789012/q"}},
		"VpcConfig":{"SubnetIds":["subnet-1","subnet-2"],"SecurityGroupIds":["sg-1"]},"Tags":[{"Key":"a","Value":"b"},{"Key":"c","Value":"d"}],
		"TracingConfig":{"Mode":"Active"},"Layers":["arn:aws:lambda:eu-west-1:123456789012:layer:l:1"]}`)
	cloudcontrol.Coerce("AWS::Lambda::Function", model)
	b.ReportAllocs()
	for b.Loop() {
		cloudcontrol.Coerce("AWS::Lambda::Function", model)
	}
}
