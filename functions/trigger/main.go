// The trigger function starts a deployment for an archive that was put into an inbox. Its payload is trigger.Event, as
// EventBridge sends it; its environment UPLOADS_BUCKET and RUN_STATE_MACHINE_ARN.
package main

import (
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/slipway-cdk/slipway/pkg/trigger"
)

func main() {
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil)).With("function", lambdacontext.FunctionName)
	lambda.Start(trigger.Serve(logger, os.Getenv))
}
