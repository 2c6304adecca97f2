// Package dynamodb provisions the resource types of Amazon DynamoDB through its own API.
package dynamodb

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

type call = direct.Call[*dynamodb.Client]

// Service returns the types.
func Service() direct.Set {
	return direct.Service[*dynamodb.Client]{
		Name:   "dynamodb",
		New:    func(cfg aws.Config) *dynamodb.Client { return dynamodb.NewFromConfig(cfg) },
		Errors: errorKinds,
		Kinds:  []direct.Kind[*dynamodb.Client]{table()},
	}
}

// errorKinds are the service's own codes. A table that is being changed is "in use", and so is, in a create, the name of one that exists
// (taken). The limit is one of operations at a time.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateTable.html#API_UpdateTable_Errors
var errorKinds = direct.Errors{
	"ResourceInUseException":                provider.KindConflict,
	"TableInUseException":                   provider.KindConflict,
	"ContinuousBackupsUnavailableException": provider.KindConflict,
	"ReplicatedWriteConflictException":      provider.KindConflict,
	"LimitExceededException":                provider.KindThrottled,
	"TableNotFoundException":                provider.KindNotFound,
}

// taken tells that the name of a table is that of another one.
func taken(err error) error {
	if code(err) == "ResourceInUseException" {
		return &provider.Error{Kind: provider.KindAlreadyExists, Code: "ResourceInUseException", Message: "there is a table with this name", Err: err}
	}
	return err
}

// code is the service's code of a failure, "" when it has none.
func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

func tag(k, v *string) types.Tag      { return types.Tag{Key: k, Value: v} }
func pair(t types.Tag) (k, v *string) { return t.Key, t.Value }
