package dynamodb

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// putTable compares the table with what has changed and makes the first call that is due: UpdateTable makes one kind of change, and
// builds or drops one index, at a time. An index that goes makes room for one that comes, and one that comes needs the throughput that
// the billing asks for. Encryption is the last, since the other names of a key do not tell whether it is in use already.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateTable.html
func putTable(ctx context.Context, c *call) error {
	live, err := describe(ctx, c)
	if err != nil {
		return err
	}
	var pending []*dynamodb.UpdateTableInput
	for _, kind := range []func(*call, *types.TableDescription) ([]*dynamodb.UpdateTableInput, error){
		dropIndexes, changeBilling, changeWarmth, buildIndexes, changeStream, changeClass, changeProtection, changeEncryption,
	} {
		due, err := kind(c, live)
		if err != nil {
			return err
		}
		pending = append(pending, due...)
	}
	if len(pending) == 0 {
		return nil
	}
	in := pending[0]
	in.TableName = &c.PhysicalID
	_, err = c.Client.UpdateTable(ctx, in)
	if code(err) == "ValidationException" && in.SSESpecification != nil && strings.Contains(err.Error(), "already encrypted") {
		err = nil
	}
	if err == nil && len(pending) > 1 {
		return direct.ErrAgain
	}
	return err
}

// index is a global secondary index as the template gives it.
type index struct {
	types.GlobalSecondaryIndex
}

func indexes(v any) ([]index, error) {
	var out []index
	for _, given := range objects(v) {
		var i index
		if err := direct.Into(without(given, "ContributorInsightsSpecification"), &i.GlobalSecondaryIndex, nil); err != nil {
			return nil, err
		}
		out = append(out, i)
	}
	return out, nil
}

func names(list []index) []string {
	var out []string
	for _, i := range list {
		out = append(out, aws.ToString(i.IndexName))
	}
	return out
}

// built is the live index of a name, nil when there is none.
func built(live *types.TableDescription, name string) *types.GlobalSecondaryIndexDescription {
	for i := range live.GlobalSecondaryIndexes {
		if aws.ToString(live.GlobalSecondaryIndexes[i].IndexName) == name {
			return &live.GlobalSecondaryIndexes[i]
		}
	}
	return nil
}

// builtAs reports whether a live index has the keys and the projection of the desired one: they can't be changed.
func (i index) builtAs(live *types.GlobalSecondaryIndexDescription) bool {
	keys := func(list []types.KeySchemaElement) []string {
		var out []string
		for _, k := range list {
			out = append(out, string(k.KeyType)+" "+aws.ToString(k.AttributeName))
		}
		return out
	}
	projected := func(p *types.Projection) []string {
		if p == nil {
			return nil
		}
		out := slices.Sorted(slices.Values(p.NonKeyAttributes))
		return append(out, string(p.ProjectionType))
	}
	return slices.Equal(keys(i.KeySchema), keys(live.KeySchema)) && slices.Equal(projected(i.Projection), projected(live.Projection))
}

// dropIndexes drops what the template no longer gives, and what has to be built anew; never what it has not given.
func dropIndexes(c *call, live *types.TableDescription) (due []*dynamodb.UpdateTableInput, err error) {
	if !c.Changed("GlobalSecondaryIndexes") {
		return nil, nil
	}
	now, err := indexes(c.Properties["GlobalSecondaryIndexes"])
	if err != nil {
		return nil, err
	}
	before, err := indexes(c.Previous["GlobalSecondaryIndexes"])
	if err != nil {
		return nil, err
	}
	drop := direct.Without(names(before), names(now))
	for _, i := range now {
		if at := built(live, *i.IndexName); at != nil && !i.builtAs(at) {
			drop = append(drop, *i.IndexName)
		}
	}
	for _, name := range drop {
		if built(live, name) != nil {
			due = append(due, &dynamodb.UpdateTableInput{GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{
				{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: &name}},
			}})
		}
	}
	return due, nil
}

// buildIndexes builds those that are not there, or not any more when their turn comes.
func buildIndexes(c *call, live *types.TableDescription) (due []*dynamodb.UpdateTableInput, err error) {
	if !c.Changed("GlobalSecondaryIndexes") {
		return nil, nil
	}
	now, err := indexes(c.Properties["GlobalSecondaryIndexes"])
	if err != nil {
		return nil, err
	}
	for _, i := range now {
		if at := built(live, *i.IndexName); at != nil && i.builtAs(at) {
			continue
		}
		in := dynamodb.UpdateTableInput{GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{
			{Create: (*types.CreateGlobalSecondaryIndexAction)(&i.GlobalSecondaryIndex)},
		}}
		if err := direct.Into(c.Properties, &in, nil, "AttributeDefinitions"); err != nil {
			return nil, err
		}
		due = append(due, &in)
	}
	return due, nil
}

// unlimited is what takes a maximum away.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_OnDemandThroughput.html
const unlimited = -1

func sameMaximum(want, live *types.OnDemandThroughput) bool {
	maximum := func(t *types.OnDemandThroughput) (int64, int64) {
		if t == nil {
			return unlimited, unlimited
		}
		return orUnlimited(t.MaxReadRequestUnits), orUnlimited(t.MaxWriteRequestUnits)
	}
	r1, w1 := maximum(want)
	r2, w2 := maximum(live)
	return r1 == r2 && w1 == w2
}

func orUnlimited(n *int64) int64 {
	if n == nil {
		return unlimited
	}
	return *n
}

// maximumOf is a maximum with what it does not name taken away.
func maximumOf(t *types.OnDemandThroughput) *types.OnDemandThroughput {
	if t == nil {
		t = new(types.OnDemandThroughput)
	}
	return &types.OnDemandThroughput{MaxReadRequestUnits: aws.Int64(orUnlimited(t.MaxReadRequestUnits)), MaxWriteRequestUnits: aws.Int64(orUnlimited(t.MaxWriteRequestUnits))}
}

func sameThroughput(want *types.ProvisionedThroughput, live *types.ProvisionedThroughputDescription) bool {
	return want == nil || live != nil && aws.ToInt64(want.ReadCapacityUnits) == aws.ToInt64(live.ReadCapacityUnits) && aws.ToInt64(want.WriteCapacityUnits) == aws.ToInt64(live.WriteCapacityUnits)
}

func billingMode(live *types.TableDescription) types.BillingMode {
	if live.BillingModeSummary == nil || live.BillingModeSummary.BillingMode == "" {
		return types.BillingModeProvisioned
	}
	return live.BillingModeSummary.BillingMode
}

// changeBilling sets the mode and the throughput of the table and its indexes in one call, since a table that
// becomes a provisioned one needs all of it at once.
func changeBilling(c *call, live *types.TableDescription) ([]*dynamodb.UpdateTableInput, error) {
	mode := types.BillingMode(c.Text("BillingMode"))
	if mode == "" {
		mode = types.BillingModeProvisioned
	}
	provisioned := mode == types.BillingModeProvisioned
	var in, want dynamodb.UpdateTableInput
	due := false
	if err := direct.Into(c.Properties, &want, nil, "ProvisionedThroughput", "OnDemandThroughput"); err != nil {
		return nil, err
	}
	switched := c.Changed("BillingMode") && mode != billingMode(live)
	if switched {
		in.BillingMode, due = mode, true
	}
	if provisioned && (switched || c.Changed("ProvisionedThroughput")) && !sameThroughput(want.ProvisionedThroughput, live.ProvisionedThroughput) {
		in.ProvisionedThroughput, due = want.ProvisionedThroughput, true
	}
	if !provisioned && c.Changed("OnDemandThroughput") && !sameMaximum(want.OnDemandThroughput, live.OnDemandThroughput) {
		in.OnDemandThroughput, due = maximumOf(want.OnDemandThroughput), true
	}
	list, err := indexes(c.Properties["GlobalSecondaryIndexes"])
	if err != nil {
		return nil, err
	}
	for _, i := range list {
		at := built(live, *i.IndexName)
		if at == nil || !i.builtAs(at) || !switched && !c.Changed("GlobalSecondaryIndexes") {
			continue
		}
		action := types.UpdateGlobalSecondaryIndexAction{IndexName: i.IndexName}
		switch {
		case provisioned && !sameThroughput(i.ProvisionedThroughput, at.ProvisionedThroughput):
			action.ProvisionedThroughput = i.ProvisionedThroughput
		case !provisioned && !sameMaximum(i.OnDemandThroughput, at.OnDemandThroughput):
			action.OnDemandThroughput = maximumOf(i.OnDemandThroughput)
		default:
			continue
		}
		in.GlobalSecondaryIndexUpdates, due = append(in.GlobalSecondaryIndexUpdates, types.GlobalSecondaryIndexUpdate{Update: &action}), true
	}
	if !due {
		return nil, nil
	}
	return []*dynamodb.UpdateTableInput{&in}, nil
}

// changeWarmth: what has been warmed does not cool, so that a removed value changes nothing.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput.html
func changeWarmth(c *call, live *types.TableDescription) (due []*dynamodb.UpdateTableInput, err error) {
	var want dynamodb.UpdateTableInput
	if err := direct.Into(c.Properties, &want, nil, "WarmThroughput"); err != nil {
		return nil, err
	}
	differs := func(want *types.WarmThroughput, read, write *int64) bool {
		return want != nil && (aws.ToInt64(want.ReadUnitsPerSecond) != aws.ToInt64(read) || aws.ToInt64(want.WriteUnitsPerSecond) != aws.ToInt64(write))
	}
	at := live.WarmThroughput
	if at == nil {
		at = new(types.TableWarmThroughputDescription)
	}
	if c.Changed("WarmThroughput") && differs(want.WarmThroughput, at.ReadUnitsPerSecond, at.WriteUnitsPerSecond) {
		due = append(due, &dynamodb.UpdateTableInput{WarmThroughput: want.WarmThroughput})
	}
	if !c.Changed("GlobalSecondaryIndexes") {
		return due, nil
	}
	list, err := indexes(c.Properties["GlobalSecondaryIndexes"])
	if err != nil {
		return nil, err
	}
	for _, i := range list {
		at := built(live, *i.IndexName)
		if at == nil || !i.builtAs(at) {
			continue
		}
		warm := at.WarmThroughput
		if warm == nil {
			warm = new(types.GlobalSecondaryIndexWarmThroughputDescription)
		}
		if differs(i.WarmThroughput, warm.ReadUnitsPerSecond, warm.WriteUnitsPerSecond) {
			due = append(due, &dynamodb.UpdateTableInput{GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{
				{Update: &types.UpdateGlobalSecondaryIndexAction{IndexName: i.IndexName, WarmThroughput: i.WarmThroughput}},
			}})
		}
	}
	return due, nil
}

// changeStream: a stream has to end before another one with other images begins.
func changeStream(c *call, live *types.TableDescription) (due []*dynamodb.UpdateTableInput, err error) {
	if !c.Changed("StreamSpecification") {
		return nil, nil
	}
	want := types.StreamViewType(direct.Text(object(c.Properties["StreamSpecification"])["StreamViewType"]))
	at := streamView(live)
	if at == want {
		return nil, nil
	}
	if at != "" {
		due = append(due, &dynamodb.UpdateTableInput{StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(false)}})
	}
	if want != "" {
		due = append(due, &dynamodb.UpdateTableInput{StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: want}})
	}
	return due, nil
}

// streamView is what the table's stream shows, "" when there is none.
func streamView(live *types.TableDescription) types.StreamViewType {
	if s := live.StreamSpecification; s != nil && aws.ToBool(s.StreamEnabled) {
		return s.StreamViewType
	}
	return ""
}

func tableClass(live *types.TableDescription) types.TableClass {
	if live.TableClassSummary == nil || live.TableClassSummary.TableClass == "" {
		return types.TableClassStandard
	}
	return live.TableClassSummary.TableClass
}

func changeClass(c *call, live *types.TableDescription) ([]*dynamodb.UpdateTableInput, error) {
	want := types.TableClass(c.Text("TableClass"))
	if !c.Changed("TableClass") || want == "" || want == tableClass(live) {
		return nil, nil
	}
	return []*dynamodb.UpdateTableInput{{TableClass: want}}, nil
}

func changeProtection(c *call, live *types.TableDescription) ([]*dynamodb.UpdateTableInput, error) {
	want := c.Text("DeletionProtectionEnabled") == "true"
	if !c.Changed("DeletionProtectionEnabled") || want == aws.ToBool(live.DeletionProtectionEnabled) {
		return nil, nil
	}
	return []*dynamodb.UpdateTableInput{{DeletionProtectionEnabled: &want}}, nil
}

// encrypted reports whether a table has a key that can be seen; another one has a key of the service.
func encrypted(live *types.TableDescription) bool {
	return live.SSEDescription != nil && live.SSEDescription.Status != types.SSEStatusDisabled && live.SSEDescription.Status != types.SSEStatusDisabling
}

func changeEncryption(c *call, live *types.TableDescription) ([]*dynamodb.UpdateTableInput, error) {
	if !c.Changed("SSESpecification") {
		return nil, nil
	}
	in := dynamodb.UpdateTableInput{SSESpecification: &types.SSESpecification{Enabled: aws.Bool(false)}}
	given := object(c.Properties["SSESpecification"])
	if direct.Text(given["SSEEnabled"]) != "true" {
		if !encrypted(live) {
			return nil, nil
		}
		return []*dynamodb.UpdateTableInput{&in}, nil
	}
	if key := direct.Text(given["KMSMasterKeyId"]); encrypted(live) && key != "" && strings.HasSuffix(aws.ToString(live.SSEDescription.KMSMasterKeyArn), key) {
		return nil, nil
	}
	in.SSESpecification = nil
	return []*dynamodb.UpdateTableInput{&in}, direct.Into(c.Properties, &in, renames, "SSESpecification")
}
