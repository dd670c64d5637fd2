// Package push keeps every subscriber of an output in step with the world.
//
// It is one engine for every protocol: xDS, MCP and the rest are dialects of a
// subscriber, named versioned resources, accept and refuse. The engine knows
// who subscribed to what; the output supplies a [World] that resolves and
// encodes names, and speaks the protocol.
//
//	Publish ──▶ dispatch ──▶ dirty names of each subscriber ──▶ workers ──▶ outbox ──▶ the stream's goroutine
//	 newest      inverted     exact, never coarsened             assemble    one per     sends
//	 world       index                                                       type
//
// A change costs the changed resources times their subscribers. [Engine.Publish]
// takes note of the newest world; the one dispatcher looks up who subscribed to
// the changed names, through an index that has no entry for anybody else, and
// marks the names dirty. A fixed number of workers assemble responses from the
// newest world, so whatever happened while a subscriber was busy reaches it
// once. Each resource is encoded once per revision, and its bytes are shared by
// every stream.
//
// What goes first: a change is urgent if clients go astray until they know of
// it, such as to an endpoint that is gone ([Changed].Urgent). While work waits,
// a subscriber with something urgent has its turn before those without, and in
// its response the urgent resources come first. Of five turns one at least is
// for the subscriber without anything urgent who waited longest, so nobody
// starves. What waits in the debounce is one step, and goes out in that order.
//
// A client that does not read or does not answer costs a mark for each change
// and nothing else: no look-up, no assembly, no worker. Where all names matter
// to it, those which came and went meanwhile are forgotten.
//
// What keeps it right:
//
//   - A name is entered in the index before the world is read for it, and a
//     world is published before the index is read: no change falls between.
//   - A subscriber has at most one unanswered response of a type. Past a bound
//     ([Config].Patience) the newest is sent nevertheless, and an answer that
//     comes later still counts for what no later response brought anew.
//   - What was refused is not sent again as it is, until something that was
//     refused changes or goes. Then that goes first, by itself, and the others
//     are tried again in halves: nobody knows which of them was at fault.
//   - What is sent is decided by comparing versions, which are hashes of
//     content, with what the subscriber holds: nothing is sent twice, and
//     marking too much would cost time but never a message.
//   - Types go out in the order of [Config].Types; removals of a type with
//     RemoveLast wait until later types are settled.
//
// Concurrency: a [Subscriber]'s state is guarded by its own lock, held while
// its requests are taken in and while a worker assembles, never across a send,
// a callback or I/O. Its dirty names have a lock of their own, so that the
// dispatcher never waits for an assembly.
package push
