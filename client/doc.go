// Package client keeps a local copy of the records of an Isthmus that a filter selects, and
// keeps it up to date. The server is an Isthmus with outputs.watch.
//
// A [Replica] is unknown until its first snapshot is complete, and has no view until then.
// After that it always has one: a [View] is every selected record at one revision. A commit
// replaces the view in one step, however many messages it came in, and so does a new
// snapshot after a reset. A broken stream leaves the view as it is; the replica connects
// again and is sent the missed commits. Nothing of a half-received commit or snapshot is ever
// shown.
//
// A program that acts on records reads a view, acts, and waits for a change:
//
//	for {
//		changed := replica.Changed() // before the view, so that no change is missed
//		if view := replica.View(); view != nil {
//			for change := range view.Since(last) {
//				...
//			}
//			last = view
//		}
//		select {
//		case <-changed:
//		case <-ctx.Done():
//			return
//		}
//	}
//
// Changes are level-triggered: a slow reader skips to the newest view and queues nothing.
//
// A known view can lack records of a source that is not primed: Isthmus waits for sources as
// its configuration tells outputs to wait. [Replica.Sources] has their states.
//
// The package writes nothing, and does not own the connection. A connection that may break
// silently needs keepalive parameters, as in the example.
//
// Concurrency: every method may be called from any goroutine, and [Replica.Run] by one
// goroutine at a time. Readers take no lock and never wait for the stream. Views and records
// are shared and must not be changed.
package client
