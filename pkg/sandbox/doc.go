// Package sandbox is a simulated AWS for `--local`, tests and rehearsals. It speaks the real Cloud Control
// protocol and STS on a loopback port, so that the unchanged AWS clients work against it, and a direct API of its
// own that stands for those of the services. It behaves as AWS would and is never more permissive.
//
// What is in the room, by file:
//
//   - semantics, without I/O: model.go (paths, patches, create-only and read-only rules), scope.go (partitions,
//     global services), shapes.go with shapes.txt (identifiers and attributes in AWS's shapes), physical.go (what services call
//     their resources where Cloud Control calls them otherwise), fallback.go (the
//     same for everything not in the table), pattern.go (strings that match a pattern), references.go with
//     relations.txt (who refers to whom, what can't be deleted), latency.go with latency.tsv;
//   - the lifecycle of a request: engine.go (acceptance), lifecycle.go (create, update, cancel), deletion.go (delete
//     and what goes along), requests.go (operations and client tokens), custom.go (handlers of custom resources);
//   - storage: database.go, resources.go, inventory.go; wire: http.go, cloudcontrol.go, direct.go, sts.go; callers:
//     sandbox.go, client.go.
//
// What is not: S3 objects, policy evaluation, networks, running code. A resource is a model, not a service.
package sandbox
