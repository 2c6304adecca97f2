package intrinsic

import (
	"fmt"
	"regexp"
	"strings"
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

func findPartition(region string) (partition, bool) {
	if !regionName.MatchString(region) {
		return partition{}, false
	}
	for _, p := range partitions() {
		if strings.HasPrefix(region, p.prefix) {
			return p, true
		}
	}
	return partition{}, false
}

// PartitionOf is the partition of a region ("aws", "aws-cn"), or "" when it is not the name of a region.
func PartitionOf(region string) string {
	p, _ := findPartition(region)
	return p.name
}

// URLSuffixOf is the domain of a region's services ("amazonaws.com"), or "" when it is not a region's name.
func URLSuffixOf(region string) string {
	p, _ := findPartition(region)
	return p.suffix
}

// PseudoFor gives the pseudo parameters of a stack. The StackID has a constant last part (reference §7.5):
// there is no CloudFormation stack behind it, and resources named after it keep their names.
func PseudoFor(account, region, stack string) Pseudo {
	p := Pseudo{AccountID: account, Region: region, Partition: PartitionOf(region), URLSuffix: URLSuffixOf(region), StackName: stack}
	p.StackID = fmt.Sprintf("arn:%s:cloudformation:%s:%s:stack/%s/cdkd", p.Partition, region, account, stack)
	return p
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
