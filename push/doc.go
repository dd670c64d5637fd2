// Package push keeps every subscriber of an output in step with the world.
//
// It is one engine for every protocol: xDS, MCP and the rest are dialects of a
// subscriber, named versioned resources, ACK and NACK. The engine knows who
// subscribed to what; a [Producer] supplies a [World] that resolves and encodes
// names, and a table of its types; the output speaks the protocol.
//
//	Publish ──▶ dispatch ──▶ dirty names of each subscriber ──▶ workers ──▶ outbox ──▶ the stream's goroutine
//	 newest      inverted     exact, never coarsened             assemble    one per     sends
//	 world       index                                                       type
//
// Several producers share one engine. Each publishes by itself, and is primed
// and complete by itself: a type whose producer has published nothing is not
// answered, the others are. A row of a producer's table is a [TypeSpec]: which audience
// keys lead changes to clients, which types a resource refers to, the answer for a
// name that stands for nothing, how long changes wait.
//
// A change costs the changed resources times their subscribers.
// [Producer.Publish] takes note of the newest world; the one dispatcher looks up
// who subscribed to the changed names, through an index that has no entry for
// anybody else, and marks the names dirty. A fixed number of workers assemble
// responses from the newest world, so whatever happened while a subscriber was
// busy reaches it once. Each resource is encoded once per revision, and its
// bytes are shared by every stream. Resources may share parts of their bytes, too
// ([Fragments]).
//
// Two kinds of subjects are sent otherwise. An [Incremental] one is sent as what differs
// from the revision that the subscriber has ACKed, or as a whole that takes the place
// of whatever it has. An [Unrepeatable] one is encoded anew for each message.
//
// Urgency: a change is urgent if clients go astray until they have it, such as to
// an endpoint that is gone ([Changed].Urgent). While work waits,
// a subscriber with something urgent has its turn before those without, and in
// its response the urgent resources come first. Of five turns at least one is
// for the subscriber without anything urgent that waited longest, so nobody starves.
// A turn is bounded: it looks at some thousand names at most ([Config].Turn).
//
// Two relations between resources, named by the resource ([Referrer]):
//
//   - Needs: a resource waits until what it refers to is ACKed, NACKed or
//     overdue. After a NACK only a resource of that one service stays back, an
//     aggregate goes out.
//   - Brings: what a resource refers to is sent right behind it, because its client
//     waits for that. If its type is [TypeSpec].Awaited, it is sent even to a client
//     that has it.
//
// A removal waits until everything that may refer to the resource was sent, up to the
// step at which it went, and answered. It waits for nothing that is sent later, and
// for no resource that a NACK keeps back. A resource that refers to something gone
// waits for no removal, even a NACKed one. A revocation waits for nothing.
//
// A name that has to wait says for what: the answer to a response, a name of another
// type, or the step up to which the types that may refer to it have to be settled. It is
// not looked at again before an ACK, a NACK, the end of patience or a step brings that
// about. What is waited for knows who waits, so nothing is searched.
//
// A client that does not read or does not answer costs a mark for each change
// and nothing else: no look-up, no assembly, no worker. If it asked for all names,
// those that came and went meanwhile are forgotten. A name that stands for nothing
// costs its bytes and less than a hundred more, and the names that clients may ask
// for are bounded in bytes ([Holdings]). A resource that a subscriber has costs some
// 24 bytes, and some 6 in the index. They point to a name and version that all
// subscribers share, and keep no resource in memory, but for the full sets of
// [TypeSpec].Whole types.
//
// The rules that keep it right:
//
//   - A name is entered in the index before the world is read for it, and a
//     world is published before the index is read: no change falls between.
//   - A subscriber has at most one unanswered response of a type. Past a bound
//     ([Config].Patience) the newest is sent nevertheless, and an answer that
//     comes later still counts for what no later response brought anew.
//   - Resources that were NACKed together are tried again at once, in ever smaller
//     groups, so that the good ones arrive. One that was NACKed alone is not sent
//     again until it changes or, if its type is [TypeSpec].Exclusive, until another
//     of the type was ACKed. A full set cannot be split: all that was new in it
//     counts as NACKed until a set is ACKed.
//   - A first state may take several responses. The last one says so to a subscriber that
//     asks for that ([Request].MarkFirst): nothing of it is left to look at.
//   - A resource is sent if its version differs from the one that the subscriber
//     holds. The version is a hash of the content, or as an [Incremental] subject
//     says. So nothing is sent twice, and marking too much costs time but never a
//     message.
//
// Concurrency: a [Subscriber]'s state is guarded by its own lock, held while
// its requests are taken in and while a worker assembles, never across a send
// or I/O. Of a producer's code only the look-ups of a [World] run under it. The
// dispatcher finds out with no lock held which subscribers a step concerns. Then it
// makes the step, which calls no producer. A subscriber's dirty names have a lock of
// their own, so that the dispatcher never waits for an assembly.
// A panic in a producer's code costs one resource, one stream or, at worst, all
// streams, and never the process.
//
// Package pushtest checks, from outside, the contract between producers and the
// engine.
package push
