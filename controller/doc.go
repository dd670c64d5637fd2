// Package controller brings the keys of another system to their desired state,
// one key at a time, again and again until it is so.
//
// The queue holds keys, never payloads: a reconciler is called with a key and
// looks up the desired and the actual state for itself. A key is in the queue
// once, however often it is added. A key that fails is tried again with growing
// backoff, and no other key waits for it. The keys of the start are added with
// [Low] priority, so that a live change overtakes them.
//
// If what a reconciler does is bounded, by writes per second say, a key for which
// there is no permit waits for one, the most urgent first; see [Config.Permit],
// [Outcome.Throttled] and [PermitOf]. Every fourth permit is for the key that has waited
// longest, so none starves.
//
// After a reconciler has written, its key waits until the reconciler's own view of
// the other system shows the write, so that no decision is based on a view known to
// be stale. If the view does not show it in time, the key is reconciled again. No
// reconciler runs before every [Gate] is open, and [Controller.Run] returns only
// when every reconciler has returned.
//
// A [Gatherer] stands before the queue and turns a burst into one delivery.
//
// The package knows nothing of what keys name, does no I/O and speaks no third
// party's types. A queue without clock, goroutine or lock decides which key runs
// when; [Controller] adds clock, goroutines and locks. All methods may be called from any
// goroutine, and none blocks but Run.
package controller
