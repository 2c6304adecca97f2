// The janitor function settles runs whose execution has died. Its payload is run.SettleInput, its
// environment that of package controlplane.
package main

import "github.com/slipway-cdk/slipway/pkg/controlplane"

func main() { controlplane.Serve((*controlplane.Plane).Janitor) }
