// The planner function opens runs, decides their waves and closes them. Its payload is run.PlannerInput, its
// environment that of package controlplane.
package main

import "github.com/slipway-cdk/slipway/pkg/controlplane"

func main() { controlplane.Serve((*controlplane.Plane).Planner) }
