package state

import (
	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
)

// DefaultPrefix is the key prefix of everything that cdkd and Slipway share.
const DefaultPrefix = "cdkd"

// Store reads and writes the files of every stack. It is safe for concurrent use.
type Store struct {
	Objects objectstore.Store
	// Prefix is DefaultPrefix when empty.
	Prefix string
	Clock  clock.Clock
}
