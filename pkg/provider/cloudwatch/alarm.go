package cloudwatch

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// alarmProperties are what one call puts: what it is not given goes back to its default.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
var alarmProperties = []string{
	"ActionsEnabled", "AlarmActions", "AlarmDescription", "ComparisonOperator", "DatapointsToAlarm", "Dimensions", "EvaluateLowSampleCountPercentile",
	"EvaluationPeriods", "ExtendedStatistic", "InsufficientDataActions", "MetricName", "Metrics", "Namespace", "OKActions", "Period", "Statistic",
	"Threshold", "ThresholdMetricId", "TreatMissingData", "Unit",
}

const recent = "too new: its defaults are not documented"

// alarm: the service takes a put of a name that is taken for a change, so that it is looked for before.
func alarm() direct.Kind[*cloudwatch.Client] {
	return direct.Kind[*cloudwatch.Client]{
		Type: "AWS::CloudWatch::Alarm", Identity: direct.ByName, LookFirst: true,
		CreateOnly: []string{"AlarmName"},
		Create: func(ctx context.Context, c *call) (string, error) {
			name := c.Text("AlarmName")
			in := cloudwatch.PutMetricAlarmInput{AlarmName: &name, Tags: direct.TagList(c.Tags(), tag)}
			return name, putAlarm(ctx, c, &in)
		},
		Find: func(ctx context.Context, c *call) (direct.Found, error) {
			a, err := getAlarm(ctx, c, c.Text("AlarmName"))
			if err != nil {
				return direct.Found{}, err
			}
			tags, err := tagsOf(ctx, c, a.AlarmArn)
			return direct.Found{ID: aws.ToString(a.AlarmName), Tags: tags}, err
		},
		Facets: []direct.Facet[*cloudwatch.Client]{
			{
				Properties: alarmProperties, Created: true,
				// The call would make an alarm that is gone, without its tags.
				Put: func(ctx context.Context, c *call) error {
					if _, err := getAlarm(ctx, c, c.PhysicalID); err != nil {
						return err
					}
					return putAlarm(ctx, c, &cloudwatch.PutMetricAlarmInput{AlarmName: &c.PhysicalID})
				},
			},
			tags("alarm:"),
		},
		Unhandled: map[string]string{
			"ActionConfiguration": recent, "EvaluationCriteria": recent, "EvaluationInterval": recent, "EvaluationWindow": recent, "WarmUpConfiguration": recent,
		},
		Read: readAlarm,
		Delete: func(ctx context.Context, c *call) error {
			_, err := c.Client.DeleteAlarms(ctx, &cloudwatch.DeleteAlarmsInput{AlarmNames: []string{c.PhysicalID}})
			return err
		},
	}
}

func putAlarm(ctx context.Context, c *call, in *cloudwatch.PutMetricAlarmInput) error {
	if err := direct.Into(c.Properties, in, nil, alarmProperties...); err != nil {
		return err
	}
	_, err := c.Client.PutMetricAlarm(ctx, in)
	return err
}

func getAlarm(ctx context.Context, c *call, name string) (*types.MetricAlarm, error) {
	out, err := c.Client.DescribeAlarms(ctx, &cloudwatch.DescribeAlarmsInput{AlarmNames: []string{name}, AlarmTypes: []types.AlarmType{types.AlarmTypeMetricAlarm}})
	if err != nil {
		return nil, err
	}
	if len(out.MetricAlarms) == 0 {
		return nil, direct.NotFound("alarm", name)
	}
	return &out.MetricAlarms[0], nil
}

func readAlarm(ctx context.Context, c *call) (direct.Live, error) {
	a, err := getAlarm(ctx, c, c.PhysicalID)
	if err != nil {
		return direct.Live{}, err
	}
	tags, err := tagsOf(ctx, c, a.AlarmArn)
	if err != nil {
		return direct.Live{}, err
	}
	properties := direct.From(c.Type, a, nil)
	properties["Tags"] = direct.TagModel(tags)
	return direct.Live{Properties: properties, Attributes: map[string]any{"Arn": aws.ToString(a.AlarmArn)}}, nil
}
