package provider

import (
	"regexp"
	"strings"
)

// snapshotTypes are the types whose deletion can be preceded by a final snapshot (reference §8.7;
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-deletionpolicy.html), with the
// longest name that their service takes for one.
var snapshotTypes = map[string]int{
	"AWS::EC2::Volume":                   255, // the value of a tag: the service names its snapshots itself
	"AWS::ElastiCache::CacheCluster":     50,
	"AWS::ElastiCache::ReplicationGroup": 50,
	"AWS::DocDB::DBCluster":              63,
	"AWS::Neptune::DBCluster":            63,
	"AWS::RDS::DBCluster":                63,
	"AWS::RDS::DBInstance":               255,
	"AWS::Redshift::Cluster":             255,
}

// CanSnapshot reports whether DeletionPolicy and UpdateReplacePolicy may be Snapshot for a type.
func CanSnapshot(typeName string) bool { return snapshotTypes[typeName] > 0 }

var notSnapshotChar = regexp.MustCompile(`[^A-Za-z0-9]+`)

// FinalSnapshotName names the final snapshot of a resource that a run deletes: "{id}-final-YYYYMMDD-HHMMSS" (reference
// §8.7), with the time of the run, so that it is the same however often the deletion is tried.
func FinalSnapshotName(typeName, physicalID, runID string) string {
	stamp := notSnapshotChar.ReplaceAllString(runID, "")
	if day, rest, ok := strings.Cut(runID, "T"); ok && len(rest) >= 6 {
		stamp = day + "-" + rest[:6]
	}
	tail := "-final-" + stamp
	name := strings.Trim(notSnapshotChar.ReplaceAllString(physicalID, "-"), "-")
	if limit := snapshotTypes[typeName] - len(tail); limit > 0 && len(name) > limit {
		name = strings.Trim(name[:limit], "-")
	}
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "r" + name
	}
	return name + tail
}

// NoFinalSnapshot is the refusal of a provider that can't take the final snapshot which it is asked for. The resource
// stays as it is.
func NoFinalSnapshot(req Request, who string) error {
	return &Error{
		Kind: KindUnsupported, Code: "FinalSnapshot",
		Message: who + " can't take the final snapshot of " + req.Type + " that its policy asks for, so it was not deleted: " +
			"take a snapshot by hand, then repeat the command with --skip-final-snapshot",
	}
}
