// Package xds mirrors a server of MCP-over-xDS: another Isthmus, istiod, or a registry
// that serves Istio's objects on the aggregated discovery service, as Nacos does.
//
// The source requests each kind as istiod does, by its type URL. It uses the delta
// variant where the server answers that, and else the state-of-the-world variant.
// Received resources are kept as bytes, by name: a resource repeated unchanged is not
// decoded again. After a lost connection the source resumes with its held resources, so
// that the server names the removed ones.
//
// A first listing is complete once the first state of each type is. Another Isthmus marks
// the end of a first state. For any other delta server, silence marks it; the silence is
// longer where more depends on it. From then on, a name in a delta answer's removed
// resources is deleted. A resource that a complete answer lacks is missing, and the
// supervisor judges it. An answer is ACKed once its usable resources are stored. An
// invalid resource is rejected by itself. An answer without a single decodable resource
// is NACKed, and leaves everything as it was.
//
// The layers are: configuration and connection ([Source]), a stream and its messages (run),
// the resources held of the server (held, on source/mirror), judgements on whether a first
// state is complete and a kind is known (state), and messages for the supervisor (report).
// The last three do no I/O. The rules are in docs/reference/mcp.md.
//
// Concurrency: a [Source] belongs to the goroutine that runs it. A stream has a goroutine
// that receives, which ends before [Source.Run] returns.
package xds
