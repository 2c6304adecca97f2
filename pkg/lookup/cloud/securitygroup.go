package cloud

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/slipway-cdk/slipway/pkg/lookup"
)

type securityGroupQuery struct {
	SecurityGroupID   string `json:"securityGroupId"`
	SecurityGroupName string `json:"securityGroupName"`
	VpcID             string `json:"vpcId"`
}

// securityGroup answers security-group (SecurityGroup.fromLookupById, fromLookupByName): {securityGroupId,
// allowAllOutbound} of the one group.
func securityGroup(ctx context.Context, in *place, q lookup.Query) (any, error) {
	var ask securityGroupQuery
	if err := decode(q, &ask); err != nil {
		return nil, err
	}
	if (ask.SecurityGroupID == "") == (ask.SecurityGroupName == "") {
		return nil, errors.New("the query must have one of securityGroupId and securityGroupName")
	}
	by := map[string][]string{}
	input := &ec2.DescribeSecurityGroupsInput{}
	what := "security group " + ask.SecurityGroupID + ask.SecurityGroupName
	if ask.SecurityGroupID != "" {
		input.GroupIds = []string{ask.SecurityGroupID}
	} else {
		by["group-name"] = []string{ask.SecurityGroupName}
	}
	if ask.VpcID != "" {
		by["vpc-id"] = []string{ask.VpcID}
		what += " in " + ask.VpcID
	}
	input.Filters = filters(by)
	var found []types.SecurityGroup
	pages := ec2.NewDescribeSecurityGroupsPaginator(ec2.NewFromConfig(in.cfg), input)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		switch code(err) {
		case "InvalidGroup.NotFound", "InvalidSecurityGroupID.NotFound", "InvalidGroupId.Malformed":
			return nil, &NotFoundError{What: what}
		}
		if err != nil {
			return nil, called("ec2:DescribeSecurityGroups", err)
		}
		found = append(found, page.SecurityGroups...)
	}
	one, err := only(found, what)
	if err != nil {
		return nil, err
	}
	return map[string]any{"securityGroupId": aws.ToString(one.GroupId), "allowAllOutbound": opensAll(one.IpPermissionsEgress)}, nil
}

// opensAll reports whether rules let everything out, over IPv4 and over IPv6: what the construct means by
// allowAllOutbound.
func opensAll(rules []types.IpPermission) bool {
	var four, six bool
	for _, r := range rules {
		if aws.ToString(r.IpProtocol) != "-1" {
			continue
		}
		for _, to := range r.IpRanges {
			four = four || aws.ToString(to.CidrIp) == "0.0.0.0/0"
		}
		for _, to := range r.Ipv6Ranges {
			six = six || aws.ToString(to.CidrIpv6) == "::/0"
		}
	}
	return four && six
}
