package cloud

import (
	"fmt"
	"strings"
	"testing"
)

func balancerXML(arn, kind, addresses string, groups ...string) string {
	s := `<member><LoadBalancerArn>` + arn + `</LoadBalancerArn><CanonicalHostedZoneId>Z1</CanonicalHostedZoneId><DNSName>lb.example</DNSName>` +
		`<VpcId>vpc-1</VpcId><Type>` + kind + `</Type><SecurityGroups>`
	for _, g := range groups {
		s += `<member>` + g + `</member>`
	}
	s += `</SecurityGroups>`
	if addresses != "" {
		s += `<IpAddressType>` + addresses + `</IpAddressType>`
	}
	return s + `</member>`
}

func balancers(next string, items ...string) string {
	return `<DescribeLoadBalancersResponse><DescribeLoadBalancersResult><LoadBalancers>` + strings.Join(items, "") + `</LoadBalancers><NextMarker>` + next +
		`</NextMarker></DescribeLoadBalancersResult></DescribeLoadBalancersResponse>`
}

func listenerXML(arn, of, protocol, port string) string {
	return `<member><ListenerArn>` + arn + `</ListenerArn><LoadBalancerArn>` + of + `</LoadBalancerArn><Protocol>` + protocol + `</Protocol><Port>` + port + `</Port></member>`
}

func listeners(next string, items ...string) string {
	return `<DescribeListenersResponse><DescribeListenersResult><Listeners>` + strings.Join(items, "") + `</Listeners><NextMarker>` + next +
		`</NextMarker></DescribeListenersResult></DescribeListenersResponse>`
}

// tagsOf answers DescribeTags: every load balancer has env=test, those of the map a name as well.
func tagsOf(names map[string]string) func(call) (string, error) {
	return func(c call) (string, error) {
		s := `<DescribeTagsResponse><DescribeTagsResult><TagDescriptions>`
		for i := 1; c.form.Has(fmt.Sprintf("ResourceArns.member.%d", i)); i++ {
			if i > tagsPerCall {
				return "", failure{"ValidationError"}
			}
			arn := c.form.Get(fmt.Sprintf("ResourceArns.member.%d", i))
			s += `<member><ResourceArn>` + arn + `</ResourceArn><Tags><member><Key>env</Key><Value>test</Value></member>`
			if name := names[arn]; name != "" {
				s += `<member><Key>Name</Key><Value>` + name + `</Value></member>`
			}
			s += `</Tags></member>`
		}
		return s + `</TagDescriptions></DescribeTagsResult></DescribeTagsResponse>`, nil
	}
}

func TestALoadBalancerByARN(t *testing.T) {
	w := newWorld(t, map[string]func(call) (string, error){"DescribeLoadBalancers": says(balancers("", balancerXML("arn:lb", "application", "dualstack-without-public-ipv4", "sg-1", "sg-2")))})
	const query = `{"loadBalancerArn": "arn:lb", "loadBalancerType": "application"}`
	got, err := w.ask(t, "load-balancer", query)
	wants(t, got, err, `{"loadBalancerArn": "arn:lb", "loadBalancerCanonicalHostedZoneId": "Z1", "loadBalancerDnsName": "lb.example", "vpcId": "vpc-1",
		"securityGroupIds": ["sg-1", "sg-2"], "ipAddressType": "dualstack-without-public-ipv4"}`)
	if arn := w.last(t, "DescribeLoadBalancers").form.Get("LoadBalancerArns.member.1"); arn != "arn:lb" {
		t.Errorf("asked for %q", arn)
	}
	got, err = w.ask(t, "load-balancer", `{"loadBalancerArn": "arn:lb", "loadBalancerType": "network"}`)
	refuses(t, got, err, "no network load balancer arn:lb")
	w.answers["DescribeLoadBalancers"] = fails("LoadBalancerNotFound")
	got, err = w.ask(t, "load-balancer", query)
	refuses(t, got, err, "no application load balancer arn:lb")
	w.answers["DescribeLoadBalancers"] = fails("AccessDenied")
	got, err = w.ask(t, "load-balancer", query)
	refuses(t, got, err, "elasticloadbalancing:DescribeLoadBalancers is not allowed")
	if _, err = w.ask(t, "load-balancer", `{"loadBalancerType": "network"}`); err == nil || !strings.Contains(err.Error(), "loadBalancerArn or loadBalancerTags") {
		t.Errorf("%v", err)
	}
}

func TestLoadBalancersAreMatchedByAllTagsOnAllPages(t *testing.T) {
	// Two pages, more than DescribeTags takes at a time.
	var first, second []string
	for i := range 30 {
		first = append(first, balancerXML(fmt.Sprintf("arn:%d", i), "network", ""))
		second = append(second, balancerXML(fmt.Sprintf("arn:%d", 100+i), "network", ""))
	}
	w := newWorld(t, map[string]func(call) (string, error){
		"DescribeLoadBalancers": func(c call) (string, error) {
			if c.form.Get("Marker") == "" {
				return balancers("2", first...), nil
			}
			return balancers("", second...), nil
		},
		"DescribeTags": tagsOf(map[string]string{"arn:3": "db", "arn:121": "web", "arn:122": "db"}),
	})
	got, err := w.ask(t, "load-balancer", `{"loadBalancerTags": [{"key": "Name", "value": "web"}, {"key": "env", "value": "test"}], "loadBalancerType": "network"}`)
	wants(t, got, err, `{"loadBalancerArn": "arn:121", "loadBalancerCanonicalHostedZoneId": "Z1", "loadBalancerDnsName": "lb.example", "vpcId": "vpc-1",
		"securityGroupIds": [], "ipAddressType": "ipv4"}`)
	got, err = w.ask(t, "load-balancer", `{"loadBalancerTags": [{"key": "Name", "value": "db"}], "loadBalancerType": "network"}`)
	refuses(t, got, err, "2 match where one is wanted: network load balancer tagged Name=db")
	got, err = w.ask(t, "load-balancer", `{"loadBalancerTags": [{"key": "Name", "value": "web"}, {"key": "env", "value": "live"}], "loadBalancerType": "network"}`)
	refuses(t, got, err, "no network load balancer tagged Name=web, env=live")
	w.answers["DescribeTags"] = fails("AccessDenied")
	got, err = w.ask(t, "load-balancer", `{"loadBalancerTags": [{"key": "a", "value": "b"}]}`)
	refuses(t, got, err, "elasticloadbalancing:DescribeTags is not allowed")
}

func TestAListenerByARNHasTheGroupsOfItsLoadBalancer(t *testing.T) {
	w := newWorld(t, map[string]func(call) (string, error){
		"DescribeListeners":     says(listeners("", listenerXML("arn:l", "arn:lb", "HTTPS", "443"))),
		"DescribeLoadBalancers": says(balancers("", balancerXML("arn:lb", "application", "", "sg-1"))),
	})
	const query = `{"listenerArn": "arn:l", "loadBalancerType": "application"}`
	got, err := w.ask(t, "load-balancer-listener", query)
	wants(t, got, err, `{"listenerArn": "arn:l", "listenerPort": 443, "securityGroupIds": ["sg-1"]}`)
	if arn := w.last(t, "DescribeLoadBalancers").form.Get("LoadBalancerArns.member.1"); arn != "arn:lb" {
		t.Errorf("asked for %q", arn)
	}
	got, err = w.ask(t, "load-balancer-listener", `{"listenerArn": "arn:l", "loadBalancerType": "network"}`)
	refuses(t, got, err, "no listener arn:l of the network load balancer arn:lb")
	w.answers["DescribeListeners"] = fails("ListenerNotFound")
	got, err = w.ask(t, "load-balancer-listener", query)
	refuses(t, got, err, "no listener arn:l")
	w.answers["DescribeListeners"] = fails("AccessDenied")
	got, err = w.ask(t, "load-balancer-listener", query)
	refuses(t, got, err, "elasticloadbalancing:DescribeListeners is not allowed")
}

func TestAListenerOfLoadBalancersByPortAndProtocol(t *testing.T) {
	w := newWorld(t, map[string]func(call) (string, error){
		"DescribeLoadBalancers": says(balancers("", balancerXML("arn:a", "application", "", "sg-a"), balancerXML("arn:b", "application", "", "sg-b"))),
		"DescribeTags":          tagsOf(nil),
		"DescribeListeners": func(c call) (string, error) {
			switch c.form.Get("LoadBalancerArn") + c.form.Get("Marker") {
			case "arn:a":
				return listeners("2", listenerXML("arn:a80", "arn:a", "HTTP", "80")), nil
			case "arn:a2":
				return listeners("", listenerXML("arn:a443", "arn:a", "HTTPS", "443")), nil
			}
			return listeners("", listenerXML("arn:b443", "arn:b", "HTTP", "443")), nil
		},
	})
	const tags = `"loadBalancerTags": [{"key": "env", "value": "test"}], "loadBalancerType": "application"`
	got, err := w.ask(t, "load-balancer-listener", `{`+tags+`, "listenerPort": 443, "listenerProtocol": "HTTPS"}`)
	wants(t, got, err, `{"listenerArn": "arn:a443", "listenerPort": 443, "securityGroupIds": ["sg-a"]}`)
	got, err = w.ask(t, "load-balancer-listener", `{`+tags+`, "listenerPort": 443}`)
	refuses(t, got, err, "2 match where one is wanted: listener on port 443 of the application load balancer tagged env=test")
	got, err = w.ask(t, "load-balancer-listener", `{`+tags+`, "listenerProtocol": "TCP"}`)
	refuses(t, got, err, "no TCP listener of the application load balancer")
	w.answers["DescribeLoadBalancers"] = says(balancers(""))
	got, err = w.ask(t, "load-balancer-listener", `{"loadBalancerArn": "arn:z", "loadBalancerType": "application"}`)
	refuses(t, got, err, "no application load balancer arn:z")
	if _, err = w.ask(t, "load-balancer-listener", `{"listenerPort": 443}`); err == nil || !strings.Contains(err.Error(), "listenerArn, loadBalancerArn or loadBalancerTags") {
		t.Errorf("%v", err)
	}
}
