package main

import (
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/controlplane"
)

func TestCommandsLearnWhereThePartsAre(t *testing.T) {
	p := readTemplate(t).Resources["Descriptor"].Properties
	if got := rendered(p["Name"]); got != controlplane.DescriptorParameter("[NamePrefix]") {
		t.Errorf("the parameter is called %s", got)
	}
	value := strings.NewReplacer("[RunMachine.Arn]", "arn:aws:states:eu-west-1:111122223333:stateMachine:slipway-run",
		"[AWS::Region]", "eu-west-1", "[AWS::AccountId]", "111122223333").Replace(rendered(p["Value"]))
	d, err := controlplane.ParseDescriptor([]byte(value))
	if err != nil {
		t.Fatal(err)
	}
	want := controlplane.Descriptor{
		Version: controlplane.DescriptorVersion, Release: release, StateMachine: "arn:aws:states:eu-west-1:111122223333:stateMachine:slipway-run",
		Table: "[RunLog]", UploadsBucket: "[Uploads]", Region: "eu-west-1", Account: "111122223333", StateBucket: "[StateBucketName]",
		StateBucketRegion: "[StateBucketRegion]", VaultKey: "[Vault.Arn]", Janitor: "[Janitor.Arn]",
	}
	if d != want {
		t.Errorf("the descriptor is %+v, want %+v", d, want)
	}
}
