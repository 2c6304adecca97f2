package provider

import (
	"strings"
	"testing"
)

func TestFinalSnapshotNames(t *testing.T) {
	for _, c := range []struct{ typ, id, run, want string }{
		{"AWS::RDS::DBInstance", "my-db", "20261129T213124236Z-9d519276", "my-db-final-20261129-213124"},
		{"AWS::EC2::Volume", "vol-0a1b", "20261129T213124236Z-9d519276", "vol-0a1b-final-20261129-213124"},
		{"AWS::RDS::DBCluster", "a__b--", "20261129T213124236Z-9d519276", "a-b-final-20261129-213124"},
		{"AWS::RDS::DBCluster", "9lives", "20261129T213124236Z-9d519276", "r9lives-final-20261129-213124"},
		{"AWS::ElastiCache::CacheCluster", strings.Repeat("x", 50), "20261129T213124236Z-9d519276", strings.Repeat("x", 28) + "-final-20261129-213124"},
		{"AWS::RDS::DBCluster", "", "odd", "r-final-odd"},
	} {
		if got := FinalSnapshotName(c.typ, c.id, c.run); got != c.want {
			t.Errorf("%s of %q: %s, want %s", c.typ, c.id, got, c.want)
		}
	}
	if CanSnapshot("AWS::SNS::Topic") || !CanSnapshot("AWS::EC2::Volume") {
		t.Error("which types have snapshots")
	}
}
