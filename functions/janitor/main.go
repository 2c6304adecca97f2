// The janitor function settles runs whose execution has died: one that it is told of, or all that it finds. Its payload is run.SettleInput, its
// environment that of package controlplane.
package main

import "github.com/slipway-cdk/slipway/pkg/controlplane"

func main() { controlplane.Serve((*controlplane.Plane).Janitor) }
