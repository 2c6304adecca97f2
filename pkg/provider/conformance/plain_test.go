//go:build emulators

package conformance

import (
	"maps"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// plain makes resources that cases need and that have no direct provider.
func plain(t *testing.T, cfg aws.Config) map[string]func(map[string]any) (string, func() error, error) {
	cfg = cfg.Copy()
	cfg.APIOptions = nil // these calls are not the provider's
	client := iam.NewFromConfig(cfg)
	made := map[string]func(map[string]any) (string, func() error, error){
		"AWS::IAM::User": func(properties map[string]any) (string, func() error, error) {
			name := direct.Text(properties["UserName"])
			_, err := client.CreateUser(t.Context(), &iam.CreateUserInput{UserName: &name})
			return name, func() error {
				_, err := client.DeleteUser(t.Context(), &iam.DeleteUserInput{UserName: &name})
				return present(err)
			}, err
		},
		"AWS::IAM::Group": func(properties map[string]any) (string, func() error, error) {
			name := direct.Text(properties["GroupName"])
			_, err := client.CreateGroup(t.Context(), &iam.CreateGroupInput{GroupName: &name})
			return name, func() error {
				_, err := client.DeleteGroup(t.Context(), &iam.DeleteGroupInput{GroupName: &name})
				return present(err)
			}, err
		},
	}
	maps.Copy(made, plainEC2(t, cfg))
	return made
}

// present is err unless it says that there is nothing to be deleted: the client's own retry may have met its first call's work.
func present(err error) error { return direct.Errors{}.Unless(err, provider.KindNotFound) }
