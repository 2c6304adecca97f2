package scheduler

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// defaultGroup is the group of a schedule that names none.
const defaultGroup = "default"

// scheduleProperties are those that one UpdateSchedule sets all of.
// https://docs.aws.amazon.com/scheduler/latest/APIReference/API_UpdateSchedule.html
var scheduleProperties = []string{
	"Description", "EndDate", "FlexibleTimeWindow", "GroupName", "KmsKeyArn", "ScheduleExpression", "ScheduleExpressionTimezone", "StartDate", "State", "Target",
}

// maxDescription is how long the description of a schedule may be.
// https://docs.aws.amazon.com/scheduler/latest/APIReference/API_CreateSchedule.html
const maxDescription = 512

// schedule's id is its name (reference §10.3), which is taken once in each group. A schedule has no tags: the description of a
// new one ends with the mark, which an update takes away.
func schedule() direct.Kind[*scheduler.Client] {
	return direct.Kind[*scheduler.Client]{
		Type: "AWS::Scheduler::Schedule", Identity: direct.ByName,
		CreateOnly: []string{"Name"},
		Create: func(ctx context.Context, c *call) (string, error) {
			return c.Text("Name"), createSchedule(ctx, c, c.Text("Name"))
		},
		Find: func(ctx context.Context, c *call) (direct.Found, error) {
			name := c.Text("Name")
			out, err := c.Client.GetSchedule(ctx, &scheduler.GetScheduleInput{Name: &name, GroupName: group(c.Properties)})
			if err != nil {
				return direct.Found{}, err
			}
			return direct.Found{ID: name, Tags: direct.MarkOf(aws.ToString(out.Description))}, nil
		},
		Facets: []direct.Facet[*scheduler.Client]{{
			Properties: scheduleProperties, Created: true,
			// https://docs.aws.amazon.com/scheduler/latest/APIReference/API_CreateSchedule.html
			Defaults: map[string]any{"GroupName": defaultGroup, "ScheduleExpressionTimezone": "UTC", "State": "ENABLED"},
			Put: func(ctx context.Context, c *call) error {
				if *group(c.Previous) != *group(c.Properties) {
					return moveSchedule(ctx, c)
				}
				return updateSchedule(ctx, c)
			},
		}, direct.Whole("Description", maxDescription, updateSchedule)},
		Read: func(ctx context.Context, c *call) (direct.Live, error) {
			out, err := c.Client.GetSchedule(ctx, &scheduler.GetScheduleInput{Name: &c.PhysicalID, GroupName: knownGroup(c)})
			if err != nil {
				return direct.Live{}, err
			}
			return direct.Live{Properties: scheduleModel(c, out), Attributes: map[string]any{"Arn": aws.ToString(out.Arn)}}, nil
		},
		Delete: func(ctx context.Context, c *call) error {
			_, err := c.Client.DeleteSchedule(ctx, &scheduler.DeleteScheduleInput{Name: &c.PhysicalID, GroupName: knownGroup(c)})
			return err
		},
	}
}

func group(properties map[string]any) *string {
	name := direct.Text(properties["GroupName"])
	if name == "" {
		name = defaultGroup
	}
	return &name
}

// knownGroup is the group of a schedule that exists.
func knownGroup(c *call) *string {
	if len(c.Properties) > 0 {
		return group(c.Properties)
	}
	return group(c.Previous)
}

func createSchedule(ctx context.Context, c *call, name string) error {
	in := scheduler.CreateScheduleInput{Name: &name, ClientToken: aws.String(c.Mark())}
	if err := direct.Into(c.Properties, &in, nil, scheduleProperties...); err != nil {
		return err
	}
	in.Description = aws.String(c.Marked(c.Text("Description"), maxDescription))
	_, err := c.Client.CreateSchedule(ctx, &in)
	var taken *types.ConflictException
	if errors.As(err, &taken) { // so it says that the name is taken
		return &provider.Error{Kind: provider.KindAlreadyExists, Code: taken.ErrorCode(), Message: taken.ErrorMessage(), Err: err}
	}
	return err
}

func updateSchedule(ctx context.Context, c *call) error {
	in := scheduler.UpdateScheduleInput{Name: &c.PhysicalID}
	if err := direct.Into(c.Properties, &in, nil, scheduleProperties...); err != nil {
		return err
	}
	_, err := c.Client.UpdateSchedule(ctx, &in)
	return err
}

// moveSchedule makes the schedule in its new group and removes it from the former one: the API can't move it. The name in the new
// group may be taken by the same call, made before: the mark tells.
func moveSchedule(ctx context.Context, c *call) error {
	if text := c.Text("Description"); direct.Unmarked(c.Marked(text, maxDescription)) != text {
		return &provider.Error{
			Kind: provider.KindImmutable, Code: "NotUpdatable",
			Message: "GroupName can't be changed under a description this long: shorten it by 60 characters, or give the schedule another name",
		}
	}
	err := createSchedule(ctx, c, c.PhysicalID)
	if provider.IsAlreadyExists(err) {
		out, readErr := c.Client.GetSchedule(ctx, &scheduler.GetScheduleInput{Name: &c.PhysicalID, GroupName: group(c.Properties)})
		if readErr != nil {
			return readErr
		}
		if direct.MarkOf(aws.ToString(out.Description))[direct.MarkKey] != c.Mark() {
			return err
		}
	} else if err != nil {
		return err
	}
	_, err = c.Client.DeleteSchedule(ctx, &scheduler.DeleteScheduleInput{Name: &c.PhysicalID, GroupName: group(c.Previous)})
	return errorKinds.Unless(err, provider.KindNotFound)
}

func scheduleModel(c *call, out *scheduler.GetScheduleOutput) map[string]any {
	properties := direct.From(c.Type, out, nil)
	if properties["Description"] = direct.Unmarked(aws.ToString(out.Description)); properties["Description"] == "" {
		delete(properties, "Description")
	}
	for name, live := range map[string]*time.Time{"StartDate": out.StartDate, "EndDate": out.EndDate} {
		recorded, err := time.Parse(time.RFC3339, direct.Text(c.Known(name)))
		if err == nil && live != nil && live.Equal(recorded) {
			properties[name] = c.Known(name) // as it is written in the template
		}
	}
	return properties
}
