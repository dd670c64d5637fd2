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
// answered, the others are. What a row of a table says is in [TypeSpec]: what a
// view of the type depends on, by which audience keys changes find clients, what
// a resource refers to, what is answered for what does not exist, how long
// changes wait.
//
// A change costs the changed resources times their subscribers.
// [Producer.Publish] takes note of the newest world; the one dispatcher looks up
// who subscribed to the changed names, through an index that has no entry for
// anybody else, and marks the names dirty. A fixed number of workers assemble
// responses from the newest world, so whatever happened while a subscriber was
// busy reaches it once. Each resource is encoded once per revision, and its
// bytes are shared by every stream.
//
// What goes first: a change is urgent if clients go astray until they know of
// it, such as to an endpoint that is gone ([Changed].Urgent). While work waits,
// a subscriber with something urgent has its turn before those without, and in
// its response the urgent resources come first. Of five turns one at least is
// for the subscriber without anything urgent who waited longest, so nobody
// starves. A turn is bounded: it looks at some thousand names at most.
//
// Two relations between resources, named by the resource ([Referrer]):
//
//   - Needs: a resource waits until what it refers to is ACKed, NACKed or
//     overdue. After a NACK only a resource of that one service stays back, an
//     aggregate goes out.
//   - Brings: what a resource refers to is sent right behind it, for its client
//     waits for that. What it waits for anew each time is sent even if it has it.
//
// A removal waits until the types that may refer to what is removed have been
// sent everything up to the step at which it went, and have answered; what they
// are sent later is not waited for. What stays back because of a NACK is not waited
// for either, and what refers to something that is gone waits for no removal, be it
// NACKed. A revocation waits for nothing.
//
// A client that does not read or does not answer costs a mark for each change
// and nothing else: no look-up, no assembly, no worker. Where all names matter
// to it, those which came and went meanwhile are forgotten. A name that stands
// for nothing costs its bytes and less than a hundred more, and what clients may
// ask for is bounded in bytes ([Holdings]). What a subscriber has costs it some 24
// bytes a resource, and some 6 in the index: they point to a name and version that
// all subscribers share, and, but for the full sets of [TypeSpec].Whole types, keep
// no resource in memory.
//
// What keeps it right:
//
//   - A name is entered in the index before the world is read for it, and a
//     world is published before the index is read: no change falls between.
//   - A subscriber has at most one unanswered response of a type. Past a bound
//     ([Config].Patience) the newest is sent nevertheless, and an answer that
//     comes later still counts for what no later response brought anew.
//   - What was NACKed with others is tried again at once, in ever smaller groups,
//     so that what is fine arrives. What was NACKed alone is not sent again as it
//     is. Of a full set, which cannot be split, all that was new in it counts as
//     NACKed until a set is ACKed.
//   - What is sent is decided by comparing versions, which are hashes of
//     content, with what the subscriber holds: nothing is sent twice, and
//     marking too much would cost time but never a message.
//
// Concurrency: a [Subscriber]'s state is guarded by its own lock, held while
// its requests are taken in and while a worker assembles, never across a send
// or I/O. Of a producer's code only the look-ups of a [World] run under it. The
// dispatcher finds out whom a step concerns with no lock held, and then makes the
// step, which asks nobody. A subscriber's dirty names have a lock of their own, so
// that the dispatcher never waits for an assembly.
// A panic in a producer's code costs one resource, one stream or, at worst, all
// streams, and never the process.
//
// What every producer and the engine owe each other is checked, from outside, by
// package pushtest.
package push
