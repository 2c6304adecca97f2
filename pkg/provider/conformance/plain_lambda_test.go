//go:build emulators

package conformance

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// plainLambda makes what the cases of AWS Lambda need.
func plainLambda(t *testing.T, cfg aws.Config) map[string]func(map[string]any) (string, func() error, error) {
	return map[string]func(map[string]any) (string, func() error, error){
		// The stream of a table of its own; the id is its ARN.
		"Stream": func(properties map[string]any) (string, func() error, error) {
			client, table := dynamodb.NewFromConfig(cfg), aws.String(direct.Text(properties["TableName"]))
			out, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
				TableName: table, BillingMode: ddbtypes.BillingModePayPerRequest,
				AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: ddbtypes.ScalarAttributeTypeS}},
				KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: ddbtypes.KeyTypeHash}},
				StreamSpecification:  &ddbtypes.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: ddbtypes.StreamViewTypeNewImage},
			})
			if err != nil {
				return "", nil, err
			}
			if out.TableDescription.LatestStreamArn == nil {
				return "", nil, errors.New("the table has no stream")
			}
			return *out.TableDescription.LatestStreamArn, func() error {
				_, err := client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: table})
				return present(err)
			}, nil
		},
		// A further version of a function, which is changed for it; the id is its number.
		"NextVersion": func(properties map[string]any) (string, func() error, error) {
			client, name := lambda.NewFromConfig(cfg), aws.String(direct.Text(properties["FunctionName"]))
			if _, err := client.UpdateFunctionConfiguration(t.Context(), &lambda.UpdateFunctionConfigurationInput{FunctionName: name, Description: aws.String("the next one")}); err != nil {
				return "", nil, err
			}
			wait := lambda.NewFunctionUpdatedV2Waiter(client, func(o *lambda.FunctionUpdatedV2WaiterOptions) { o.MinDelay = 50 * time.Millisecond })
			if err := wait.Wait(t.Context(), &lambda.GetFunctionInput{FunctionName: name}, time.Minute); err != nil {
				return "", nil, err
			}
			out, err := client.PublishVersion(t.Context(), &lambda.PublishVersionInput{FunctionName: name})
			if err != nil {
				return "", nil, err
			}
			return *out.Version, func() error {
				_, err := client.DeleteFunction(t.Context(), &lambda.DeleteFunctionInput{FunctionName: name, Qualifier: out.Version})
				return present(err)
			}, nil
		},
	}
}
