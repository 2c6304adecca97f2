package services

import (
	"slices"
	"testing"
)

func TestUnhandled(t *testing.T) {
	unhandled := Unhandled()
	for _, c := range []struct {
		typeName   string
		properties []string
		want       []string
	}{
		{"AWS::EC2::VPC", []string{"CidrBlock", "VpcEncryptionControl"}, []string{"VpcEncryptionControl"}},
		{"AWS::EC2::VPC", []string{"CidrBlock"}, []string{}},
		{"AWS::EC2::VPC", nil, nil},
		{"AWS::Athena::WorkGroup", []string{"Name"}, nil},
	} {
		if got := unhandled(c.typeName, c.properties); !slices.Equal(got, c.want) {
			t.Errorf("%s %v: %v", c.typeName, c.properties, got)
		}
	}
}
