package cloud

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/slipway-cdk/slipway/pkg/lookup"
)

type loadBalancerQuery struct {
	LoadBalancerArn  string                     `json:"loadBalancerArn"`
	LoadBalancerTags []loadBalancerTag          `json:"loadBalancerTags"`
	LoadBalancerType types.LoadBalancerTypeEnum `json:"loadBalancerType"`
}

type loadBalancerTag struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// String names what is asked for: "application load balancer tagged Name=web".
func (q loadBalancerQuery) String() string {
	s := "load balancer"
	if q.LoadBalancerType != "" {
		s = string(q.LoadBalancerType) + " " + s
	}
	if q.LoadBalancerArn != "" {
		s += " " + q.LoadBalancerArn
	}
	for i, t := range q.LoadBalancerTags {
		s += [2]string{" tagged ", ", "}[min(i, 1)] + t.Key + "=" + t.Value
	}
	return s
}

// loadBalancer answers load-balancer (ApplicationLoadBalancer.fromLookup, NetworkLoadBalancer.fromLookup).
func loadBalancer(ctx context.Context, in *place, q lookup.Query) (any, error) {
	var ask loadBalancerQuery
	if err := decode(q, &ask); err != nil {
		return nil, err
	}
	if ask.LoadBalancerArn == "" && len(ask.LoadBalancerTags) == 0 {
		return nil, errors.New("the query must have loadBalancerArn or loadBalancerTags")
	}
	found, err := loadBalancers(ctx, elb.NewFromConfig(in.cfg), ask)
	if err != nil {
		return nil, err
	}
	lb, err := only(found, ask.String())
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"loadBalancerArn":                   aws.ToString(lb.LoadBalancerArn),
		"loadBalancerCanonicalHostedZoneId": aws.ToString(lb.CanonicalHostedZoneId),
		"loadBalancerDnsName":               aws.ToString(lb.DNSName),
		"vpcId":                             aws.ToString(lb.VpcId),
		"securityGroupIds":                  list(lb.SecurityGroups),
		"ipAddressType":                     string(cmp.Or(lb.IpAddressType, types.IpAddressTypeIpv4)),
	}, nil
}

// loadBalancers lists those that a query means.
func loadBalancers(ctx context.Context, client *elb.Client, q loadBalancerQuery) ([]types.LoadBalancer, error) {
	input := &elb.DescribeLoadBalancersInput{}
	if q.LoadBalancerArn != "" {
		input.LoadBalancerArns = []string{q.LoadBalancerArn}
	}
	var found []types.LoadBalancer
	pages := elb.NewDescribeLoadBalancersPaginator(client, input)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		var none *types.LoadBalancerNotFoundException
		if errors.As(err, &none) {
			return nil, nil
		}
		if err != nil {
			return nil, called("elasticloadbalancing:DescribeLoadBalancers", err)
		}
		for _, lb := range page.LoadBalancers {
			if q.LoadBalancerType == "" || lb.Type == q.LoadBalancerType {
				found = append(found, lb)
			}
		}
	}
	if len(q.LoadBalancerTags) == 0 {
		return found, nil
	}
	return tagged(ctx, client, found, q.LoadBalancerTags)
}

// tagsPerCall is how many load balancers DescribeTags takes:
// https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/API_DescribeTags.html
const tagsPerCall = 20

// tagged keeps the load balancers that have all of the tags.
func tagged(ctx context.Context, client *elb.Client, among []types.LoadBalancer, want []loadBalancerTag) ([]types.LoadBalancer, error) {
	has := map[string]bool{}
	for some := range slices.Chunk(among, tagsPerCall) {
		input := &elb.DescribeTagsInput{}
		for _, lb := range some {
			input.ResourceArns = append(input.ResourceArns, aws.ToString(lb.LoadBalancerArn))
		}
		out, err := client.DescribeTags(ctx, input)
		if err != nil {
			return nil, called("elasticloadbalancing:DescribeTags", err)
		}
		for _, d := range out.TagDescriptions {
			tags := map[loadBalancerTag]bool{}
			for _, t := range d.Tags {
				tags[loadBalancerTag{aws.ToString(t.Key), aws.ToString(t.Value)}] = true
			}
			has[aws.ToString(d.ResourceArn)] = !slices.ContainsFunc(want, func(t loadBalancerTag) bool { return !tags[t] })
		}
	}
	return slices.DeleteFunc(among, func(lb types.LoadBalancer) bool { return !has[aws.ToString(lb.LoadBalancerArn)] }), nil
}
