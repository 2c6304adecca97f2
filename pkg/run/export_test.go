package run

import (
	"time"

	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// ThrottlePause is the pause after the nth throttled attempt at a creation, nothing else being known.
func ThrottlePause(runID, opID string, n int) time.Duration {
	op := runlog.Op{
		Status: runlog.OpFailed, Attempt: n, Token: token(runID, opID, string(plan.ActionCreate), n), Error: &runlog.OpError{Kind: provider.KindThrottled},
	}
	return ladders[provider.KindThrottled].pause(op, n)
}
