// The provisioner function carries out one operation on one resource. Its payload is run.ProvisionInput, its
// environment that of package controlplane.
package main

import "github.com/slipway-cdk/slipway/pkg/controlplane"

func main() { controlplane.Serve((*controlplane.Plane).Provisioner) }
