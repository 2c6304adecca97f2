package intrinsic

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/google/uuid"
)

// partitions tells partition and URL suffix by the beginning of a region's name
// (https://docs.aws.amazon.com/whitepapers/latest/aws-fault-isolation-boundaries/partitions.html; the AWS SDKs'
// partitions.json).
func partitions() []partition {
	return []partition{
		{"cn-", "aws-cn", "amazonaws.com.cn"},
		{"us-gov-", "aws-us-gov", "amazonaws.com"},
		{"us-isob-", "aws-iso-b", "sc2s.sgov.gov"},
		{"us-isof-", "aws-iso-f", "csp.hci.ic.gov"},
		{"us-iso-", "aws-iso", "c2s.ic.gov"},
		{"eu-isoe-", "aws-iso-e", "cloud.adc-e.uk"},
		{"eusc-", "aws-eusc", "amazonaws.eu"},
		{"", "aws", "amazonaws.com"},
	}
}

type partition struct{ prefix, name, suffix string }

var regionName = regexp.MustCompile(`^[a-z]{2,4}(-[a-z]+)+-\d+$`)

func findPartition(region string) partition {
	if !regionName.MatchString(region) {
		return partition{}
	}
	for _, p := range partitions() {
		if strings.HasPrefix(region, p.prefix) {
			return p
		}
	}
	return partition{}
}

// PartitionOf is the partition of a region ("aws", "aws-cn"), or "" when it is not the name of a region.
func PartitionOf(region string) string {
	p := findPartition(region)
	return p.name
}

// URLSuffixOf is the domain of a region's services ("amazonaws.com"), or "" when it is not a region's name.
func URLSuffixOf(region string) string {
	p := findPartition(region)
	return p.suffix
}

// PseudoFor gives the pseudo parameters of a stack. The StackID ends in a UUID that is derived from account,
// region and name: it stays the same from deploy to deploy, and templates that cut a unique suffix out of it
// (its last part, or the part after the UUID's fourth "-") get one. cdkd ends it in the word cdkd
// (reference §7.5), on which such templates fail; WithRecordedStackID keeps that where it is already in use.
func PseudoFor(account, region, stack string) Pseudo {
	p := Pseudo{AccountID: account, Region: region, Partition: PartitionOf(region), URLSuffix: URLSuffixOf(region), StackName: stack}
	prefix := p.stackIDPrefix()
	p.StackID = prefix + uuid.NewSHA1(uuid.NameSpaceURL, []byte(prefix)).String()
	return p
}

func (p Pseudo) stackIDPrefix() string {
	return fmt.Sprintf("arn:%s:cloudformation:%s:%s:stack/%s/", p.Partition, p.Region, p.AccountID, p.StackName)
}

// WithRecordedStackID returns the pseudo parameters with the StackID that cdkd gives the stack, if any of the
// recorded values (properties, outputs) holds it: a stack that cdkd has deployed keeps the names made from it.
func (p Pseudo) WithRecordedStackID(recorded ...any) Pseudo {
	id := p.stackIDPrefix() + "cdkd"
	for _, v := range recorded {
		if holds(v, id) {
			p.StackID = id
			break
		}
	}
	return p
}

func holds(v any, part string) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, part)
	case map[string]any:
		for _, x := range v {
			if holds(x, part) {
				return true
			}
		}
	case []any:
		for _, x := range v {
			if holds(x, part) {
				return true
			}
		}
	}
	return false
}

// Value returns a pseudo parameter by its name. AWS::NoValue gives NoValue
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/pseudo-parameter-reference.html).
func (p Pseudo) Value(name string) (any, bool) {
	switch name {
	case "AWS::AccountId":
		return p.AccountID, true
	case "AWS::NotificationARNs":
		out := make([]any, len(p.NotificationARNs))
		for i, arn := range p.NotificationARNs {
			out[i] = arn
		}
		return out, true
	case "AWS::NoValue":
		return NoValue{}, true
	case "AWS::Partition":
		return p.Partition, true
	case "AWS::Region":
		return p.Region, true
	case "AWS::StackId":
		return p.StackID, true
	case "AWS::StackName":
		return p.StackName, true
	case "AWS::URLSuffix":
		return p.URLSuffix, true
	}
	return nil, false
}
