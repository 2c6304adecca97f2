package cloudwatch

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// dashboard: as of an alarm, a put of a name that is taken is a change. A dashboard is known by its body.
func dashboard() direct.Kind[*cloudwatch.Client] {
	return direct.Kind[*cloudwatch.Client]{
		Type: "AWS::CloudWatch::Dashboard", Identity: direct.ByName, LookFirst: true,
		CreateOnly: []string{"DashboardName"},
		Create: func(ctx context.Context, c *call) (string, error) {
			name := c.Text("DashboardName")
			in := cloudwatch.PutDashboardInput{DashboardName: &name}
			if own := direct.TagsOf(c.Properties["Tags"]); len(own) > 0 {
				in.Tags = direct.TagList(own, tag)
			}
			return name, putDashboard(ctx, c, &in)
		},
		Find: func(ctx context.Context, c *call) (direct.Found, error) {
			out, err := getDashboard(ctx, c, c.Text("DashboardName"))
			if err != nil {
				return direct.Found{}, err
			}
			return direct.Found{ID: c.Text("DashboardName"), Properties: map[string]any{"DashboardBody": aws.ToString(out.DashboardBody)}}, nil
		},
		Facets: []direct.Facet[*cloudwatch.Client]{
			{
				Properties: []string{"DashboardBody"}, Created: true,
				Put: func(ctx context.Context, c *call) error {
					if _, err := getDashboard(ctx, c, c.PhysicalID); err != nil {
						return err
					}
					return putDashboard(ctx, c, &cloudwatch.PutDashboardInput{DashboardName: &c.PhysicalID})
				},
			},
			tags("dashboard/"),
		},
		Read: readDashboard,
		Delete: func(ctx context.Context, c *call) error {
			_, err := c.Client.DeleteDashboards(ctx, &cloudwatch.DeleteDashboardsInput{DashboardNames: []string{c.PhysicalID}})
			return err
		},
	}
}

func putDashboard(ctx context.Context, c *call, in *cloudwatch.PutDashboardInput) error {
	body, err := direct.Document(c.Properties["DashboardBody"])
	if err != nil {
		return err
	}
	in.DashboardBody = &body
	_, err = c.Client.PutDashboard(ctx, in)
	return err
}

func getDashboard(ctx context.Context, c *call, name string) (*cloudwatch.GetDashboardOutput, error) {
	return c.Client.GetDashboard(ctx, &cloudwatch.GetDashboardInput{DashboardName: &name})
}

// readDashboard asks for tags only where the record has some, or there is none.
func readDashboard(ctx context.Context, c *call) (direct.Live, error) {
	out, err := getDashboard(ctx, c, c.PhysicalID)
	if err != nil {
		return direct.Live{}, err
	}
	properties := map[string]any{"DashboardName": c.PhysicalID, "DashboardBody": aws.ToString(out.DashboardBody)}
	if len(c.Properties)+len(c.Previous) == 0 || c.Known("Tags") != nil {
		tags, err := tagsOf(ctx, c, arn(c, "dashboard/"))
		if err != nil {
			return direct.Live{}, err
		}
		properties["Tags"] = direct.TagModel(tags)
	}
	return direct.Live{Properties: properties}, nil
}
