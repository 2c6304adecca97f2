package ec2

import "testing"

func TestRulesThatTheServiceTakesForTheSame(t *testing.T) {
	port := func(n int32) *int32 { return &n }
	for _, c := range []struct {
		name string
		a, b map[string]any
		same bool
	}{
		{"a protocol by number", map[string]any{"IpProtocol": "6", "FromPort": 443, "ToPort": 443, "CidrIp": "0.0.0.0/0"}, map[string]any{"IpProtocol": "tcp", "FromPort": "443", "ToPort": 443, "CidrIp": "0.0.0.0/0"}, true},
		{"all traffic, with ports or without", map[string]any{"IpProtocol": "-1", "FromPort": 0, "ToPort": 65535, "CidrIp": "0.0.0.0/0"}, map[string]any{"IpProtocol": "-1", "CidrIp": "0.0.0.0/0"}, true},
		{"a range with bits of a host", map[string]any{"IpProtocol": "-1", "CidrIp": "10.1.2.3/8"}, map[string]any{"IpProtocol": "-1", "CidrIp": "10.0.0.0/8"}, true},
		{"a long form of IPv6", map[string]any{"IpProtocol": "-1", "CidrIpv6": "0:0::/0"}, map[string]any{"IpProtocol": "-1", "CidrIpv6": "::/0"}, true},
		{"a description", map[string]any{"IpProtocol": "-1", "CidrIp": "10.0.0.0/8", "Description": "a"}, map[string]any{"IpProtocol": "-1", "CidrIp": "10.0.0.0/8"}, true},
		{"another port", map[string]any{"IpProtocol": "tcp", "FromPort": 1, "ToPort": 1, "CidrIp": "10.0.0.0/8"}, map[string]any{"IpProtocol": "tcp", "FromPort": 1, "ToPort": 2, "CidrIp": "10.0.0.0/8"}, false},
		{"another side", map[string]any{"IpProtocol": "-1", "SourceSecurityGroupId": "sg-1"}, map[string]any{"IpProtocol": "-1", "SourceSecurityGroupId": "sg-2"}, false},
	} {
		a, errA := parseRule(t.Context(), nil, c.a, false)
		b, errB := parseRule(t.Context(), nil, c.b, false)
		if errA != nil || errB != nil || (a.key() == b.key()) != c.same {
			t.Errorf("%s: %q and %q, %v, %v", c.name, a.key(), b.key(), errA, errB)
		}
	}
	if r, err := parseRule(t.Context(), nil, map[string]any{"IpProtocol": "tcp", "FromPort": "22", "ToPort": 22, "CidrIp": "10.0.0.0/8"}, false); err != nil || *r.from != *port(22) {
		t.Errorf("a port as text is %v, %v", r.from, err)
	}
	if _, err := parseRule(t.Context(), nil, map[string]any{"IpProtocol": "-1"}, false); err == nil {
		t.Error("a rule without another side is taken")
	}
}

func TestALiveRuleIsWrittenInTheWordsOfTheTemplate(t *testing.T) {
	recorded, err := parseRule(t.Context(), nil, map[string]any{"IpProtocol": "6", "FromPort": "22", "ToPort": "22", "CidrIp": "10.1.2.3/8", "Description": "old"}, false)
	if err != nil {
		t.Fatal(err)
	}
	port := int32(22)
	live := rule{protocol: "tcp", from: &port, to: &port, ipv4: "10.0.0.0/8", description: "new", id: "sgr-1"}
	got := live.written([]rule{recorded}, false)
	if got["IpProtocol"] != "6" || got["CidrIp"] != "10.1.2.3/8" || got["Description"] != "new" {
		t.Errorf("it is written as %v", got)
	}
	if got := live.written(nil, false); got["IpProtocol"] != "tcp" || got["CidrIp"] != "10.0.0.0/8" || got["FromPort"] != 22 {
		t.Errorf("without a template it is written as %v", got)
	}
}
