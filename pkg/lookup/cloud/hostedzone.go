package cloud

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	"github.com/aws/aws-sdk-go-v2/service/route53/types"

	"github.com/slipway-cdk/slipway/pkg/lookup"
)

type hostedZoneQuery struct {
	DomainName  string `json:"domainName"`
	PrivateZone bool   `json:"privateZone"`
	VpcID       string `json:"vpcId"`
}

// hostedZone answers hosted-zone (HostedZone.fromLookup): {Id, Name} of the one zone of a domain, with the /hostedzone/
// and the final dot that Route 53 writes and the construct takes off.
func hostedZone(ctx context.Context, in *place, q lookup.Query) (any, error) {
	var ask hostedZoneQuery
	if err := decode(q, &ask); err != nil {
		return nil, err
	}
	client := route53.NewFromConfig(in.cfg)
	zones, err := zonesNamed(ctx, client, ask.DomainName)
	if err != nil {
		return nil, err
	}
	zones = slices.DeleteFunc(zones, func(z types.HostedZone) bool {
		return (z.Config != nil && z.Config.PrivateZone) != ask.PrivateZone
	})
	if ask.VpcID != "" {
		if zones, err = associated(ctx, client, zones, ask.VpcID); err != nil {
			return nil, err
		}
	}
	what := "public hosted zone of " + ask.DomainName
	if ask.PrivateZone {
		what = "private hosted zone of " + ask.DomainName
	}
	if ask.VpcID != "" {
		what += " associated with " + ask.VpcID
	}
	one, err := only(zones, what)
	if err != nil {
		return nil, err
	}
	return map[string]any{"Id": aws.ToString(one.Id), "Name": aws.ToString(one.Name)}, nil
}

// zonesNamed lists the zones of one name. Route 53 lists from a name on, in the order of names, so that those of the
// name itself come first: https://docs.aws.amazon.com/Route53/latest/APIReference/API_ListHostedZonesByName.html
func zonesNamed(ctx context.Context, client *route53.Client, domain string) ([]types.HostedZone, error) {
	name := strings.ToLower(strings.TrimSuffix(domain, ".")) + "."
	var found []types.HostedZone
	ask := &route53.ListHostedZonesByNameInput{DNSName: &domain}
	for {
		page, err := client.ListHostedZonesByName(ctx, ask)
		if err != nil {
			return nil, called("route53:ListHostedZonesByName", err)
		}
		for _, z := range page.HostedZones {
			if aws.ToString(z.Name) == name {
				found = append(found, z)
			}
		}
		if !page.IsTruncated || aws.ToString(page.NextDNSName) != name {
			return found, nil
		}
		ask = &route53.ListHostedZonesByNameInput{DNSName: page.NextDNSName, HostedZoneId: page.NextHostedZoneId}
	}
}

// associated keeps the zones that belong to a VPC.
func associated(ctx context.Context, client *route53.Client, zones []types.HostedZone, vpc string) ([]types.HostedZone, error) {
	var kept []types.HostedZone
	for _, z := range zones {
		out, err := client.GetHostedZone(ctx, &route53.GetHostedZoneInput{Id: z.Id})
		if err != nil {
			return nil, fmt.Errorf("looking at hosted zone %s: %w", aws.ToString(z.Id), called("route53:GetHostedZone", err))
		}
		if slices.ContainsFunc(out.VPCs, func(v types.VPC) bool { return aws.ToString(v.VPCId) == vpc }) {
			kept = append(kept, z)
		}
	}
	return kept, nil
}
