// The publisher function publishes one asset. Its payload is run.PublishInput, its
// environment that of package controlplane.
package main

import "github.com/slipway-cdk/slipway/pkg/controlplane"

func main() { controlplane.Serve((*controlplane.Plane).Publisher) }
