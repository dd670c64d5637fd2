// Package push keeps every subscriber of an output in step with the world.
//
// It is one engine for every protocol: xDS, MCP and the rest are dialects of a subscriber,
// named versioned resources, ACK and NACK. The engine knows the subscriptions; a [Producer]
// supplies a [world.World] that resolves and encodes names, and a table of its types; the output
// speaks the protocol.
//
//	Publish ──▶ dispatch ──▶ dirty names of each subscriber ──▶ workers ──▶ outbox ──▶ the stream's goroutine
//	 newest      inverted     exact, never coarsened             assemble    one per     sends
//	 world       index                                                       type
//
// Several producers share one engine. Each publishes by itself, and is primed and complete
// by itself: a type whose producer has published nothing is not answered, the others are. A
// row of a producer's table is a [world.TypeSpec]. It defines the audience keys that lead changes
// to clients, the types that a resource refers to, the answer for a name that does not
// exist, and how long changes wait.
//
// A change costs the changed resources times their subscribers. [Producer.Publish] stores
// the newest world. The one dispatcher looks up the subscribers to the changed names,
// through an index of subscriptions, and marks the names dirty. A fixed number of workers
// assemble responses from the newest world. All changes made while a subscriber was busy
// therefore reach it once. Each resource is encoded once per revision, and its bytes are
// shared by every stream. Resources may share parts of their bytes, too ([world.Fragments]).
//
// Two kinds of subjects are sent in another way. An [world.Incremental] one is sent as the
// difference from the revision that the subscriber has ACKed, or as a whole that replaces
// any revision. An [world.Unrepeatable] one is encoded anew for each message.
//
// Urgency: a change is urgent if clients misroute until they have it, such as the removal
// of an endpoint ([world.Changed].Urgent). While work waits, a subscriber with an urgent change
// has its turn before those without, and in its response the urgent resources come first.
// Of five turns at least one is for the longest-waiting subscriber without an urgent
// change, so no subscriber starves. A turn is bounded: it considers some thousand names at
// most ([Config].Turn).
//
// Two relations between resources, declared by the resource ([world.Referrer]):
//
//   - Needs: a resource waits until the resources that it refers to are ACKed, NACKed or
//     overdue. After a NACK only a resource of that one service is held back; an
//     aggregate is sent.
//   - Brings: the resources that a resource refers to are sent right behind it, because its
//     client waits for them. If their type is [world.TypeSpec].Awaited, they are sent even to a
//     client that has them.
//
// A removal has a step at which its resource disappeared. It waits until everything that
// may refer to the resource was sent, up to that step, and answered. It waits for no later
// response, and for no resource that a NACK holds back. A resource that refers to a removed
// resource waits for no removal, even a NACKed one. A revocation waits for nothing.
//
// A name that has to wait names its obstacle: the answer to a response, a name of another
// type, or a step. With a step, the types that may refer to the name have to be settled up
// to it. A waiting name is not considered again before an ACK, a NACK, the end of patience
// or a step removes the obstacle. An obstacle lists its waiting names, so nothing is
// searched.
//
// A client that does not read or does not answer costs a mark for each change and nothing
// else: no look-up, no assembly, no worker. If it asked for all names, the names that came
// and went meanwhile are forgotten. A name that does not exist costs its bytes and less
// than a hundred more, and the names that clients may ask for are bounded in bytes
// ([Holdings]). A held resource costs some 24 bytes, and some 6 in the index. They point to
// a name and version that all subscribers share. Only the full sets of [world.TypeSpec].Whole
// types keep resources in memory.
//
// The rules that keep it right:
//
//   - A name is entered in the index before the world is read for it, and a
//     world is published before the index is read: no change falls between.
//   - A subscriber has at most one unanswered response of a type. Past a bound
//     ([Config].Patience) the newest is sent nevertheless. A later answer to the overdue
//     response still counts, except for the names that a later response brought anew.
//   - Resources that were NACKed together are retried at once, in ever smaller
//     groups, so that the good ones arrive. A resource that was NACKed alone is not sent
//     again until it changes or, if its type is [world.TypeSpec].Exclusive, until another
//     of the type was ACKed. A full set cannot be split: all that was new in it
//     counts as NACKed until a set is ACKed.
//   - A first state may take several responses. The last one is marked for a subscriber that
//     asks for that ([session.Request].MarkFirst): the first state is then complete.
//   - A resource is sent if its version differs from the one that the subscriber
//     holds. The version is a hash of the content, or the revision of an [world.Incremental]
//     subject. So nothing is sent twice, and a needless mark costs time but never a
//     message. A full set that takes several turns is compared with the last one: it is not
//     sent if all that had changed has changed back.
//
// Concurrency: a [Subscriber]'s state is guarded by its own lock, held while its requests
// are taken in and while a worker assembles, never across a send or I/O. Of a producer's
// code only the look-ups of a [world.World] run under it. The dispatcher finds the affected
// subscribers of a step with no lock held. Then it makes the step, which calls no producer.
// A subscriber's dirty names have a lock of their own, so that the dispatcher never waits
// for an assembly. A panic in a producer's code costs one resource, one stream or, at
// worst, all streams, and never the process.
//
// The engine is made of packages that do not know it. Package world is the contract with
// producers, whose names push repeats, and reads and encodes what they serve. Package
// session is the state of one stream and what is sent next, without lock, goroutine or
// clock. Package index finds the streams that a change concerns, and package queue holds
// those that need a turn. What is left here joins them: producers and steps, subscribers
// with their lock and budget, and workers.
//
// Package pushtest checks, from outside, the contract between producers and the engine.
package push
