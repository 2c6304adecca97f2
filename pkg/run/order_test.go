package run

import (
	"slices"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

func TestWhatUndoesAnOperationComesAfterItWhateverTheClocksSay(t *testing.T) {
	now := time.Date(2026, 11, 29, 21, 0, 0, 0, time.UTC)
	ended := []runlog.Op{
		{OpID: "A.undo", LogicalID: "A", Attempt: 1, Wave: 3, FinishedAt: now},
		{OpID: "A", LogicalID: "A", Attempt: 1, Wave: 1, FinishedAt: now.Add(10 * time.Second)}, // by a clock that is ahead
	}
	slices.SortFunc(ended, endedBefore)
	if words := lastWords(ended); !words["A.undo#1"] || words["A#1"] {
		t.Errorf("the last word on A is %v", words)
	}
}
