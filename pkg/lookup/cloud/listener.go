package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/slipway-cdk/slipway/pkg/lookup"
)

type listenerQuery struct {
	loadBalancerQuery
	ListenerArn      string             `json:"listenerArn"`
	ListenerPort     int32              `json:"listenerPort"`
	ListenerProtocol types.ProtocolEnum `json:"listenerProtocol"`
}

// String names what is asked for: "HTTPS listener on port 443 of the application load balancer tagged Name=web".
func (q listenerQuery) String() string {
	s := "listener"
	if q.ListenerProtocol != "" {
		s = string(q.ListenerProtocol) + " " + s
	}
	if q.ListenerArn != "" {
		return s + " " + q.ListenerArn
	}
	if q.ListenerPort != 0 {
		s += " on port " + strconv.Itoa(int(q.ListenerPort))
	}
	return s + " of the " + q.loadBalancerQuery.String()
}

// listener answers load-balancer-listener (ApplicationListener.fromLookup, NetworkListener.fromLookup): the listener
// with the security groups of its load balancer.
func listener(ctx context.Context, in *place, q lookup.Query) (any, error) {
	var ask listenerQuery
	if err := decode(q, &ask); err != nil {
		return nil, err
	}
	client := elb.NewFromConfig(in.cfg)
	switch {
	case ask.ListenerArn != "":
		return listenerByARN(ctx, client, ask)
	case ask.LoadBalancerArn == "" && len(ask.LoadBalancerTags) == 0:
		return nil, errors.New("the query must have listenerArn, loadBalancerArn or loadBalancerTags")
	}
	balancers, err := loadBalancers(ctx, client, ask.loadBalancerQuery)
	if err != nil {
		return nil, err
	}
	if len(balancers) == 0 {
		return nil, &NotFoundError{What: ask.loadBalancerQuery.String()}
	}
	type match struct {
		listener types.Listener
		balancer types.LoadBalancer
	}
	var found []match
	for _, lb := range balancers {
		pages := elb.NewDescribeListenersPaginator(client, &elb.DescribeListenersInput{LoadBalancerArn: lb.LoadBalancerArn})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return nil, called("elasticloadbalancing:DescribeListeners", err)
			}
			for _, l := range page.Listeners {
				if (ask.ListenerPort == 0 || aws.ToInt32(l.Port) == ask.ListenerPort) && (ask.ListenerProtocol == "" || l.Protocol == ask.ListenerProtocol) {
					found = append(found, match{l, lb})
				}
			}
		}
	}
	one, err := only(found, ask.String())
	if err != nil {
		return nil, err
	}
	return listenerAnswer(one.listener, one.balancer), nil
}

func listenerByARN(ctx context.Context, client *elb.Client, ask listenerQuery) (any, error) {
	out, err := client.DescribeListeners(ctx, &elb.DescribeListenersInput{ListenerArns: []string{ask.ListenerArn}})
	var none *types.ListenerNotFoundException
	switch {
	case errors.As(err, &none), err == nil && len(out.Listeners) == 0:
		return nil, &NotFoundError{What: ask.String()}
	case err != nil:
		return nil, called("elasticloadbalancing:DescribeListeners", err)
	}
	of := ask.loadBalancerQuery
	of.LoadBalancerArn = aws.ToString(out.Listeners[0].LoadBalancerArn)
	found, err := loadBalancers(ctx, client, of)
	if err != nil {
		return nil, err
	}
	lb, err := only(found, ask.String()+" of the "+of.String())
	if err != nil {
		return nil, err
	}
	return listenerAnswer(out.Listeners[0], lb), nil
}

func listenerAnswer(l types.Listener, lb types.LoadBalancer) any {
	return map[string]any{
		"listenerArn":      aws.ToString(l.ListenerArn),
		"listenerPort":     json.Number(strconv.Itoa(int(aws.ToInt32(l.Port)))),
		"securityGroupIds": list(lb.SecurityGroups),
	}
}
