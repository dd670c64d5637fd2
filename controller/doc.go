// Package controller brings the keys of another system to their desired state,
// one key at a time, again and again until it is so.
//
// The queue holds keys, never payloads: a reconciler is called with a key and
// looks up for itself what is wanted and what there is. A key is in the queue
// once, however often it is added. A key that fails is tried again later and
// later, by itself: no other key waits for it. Initial keys are added with
// [Low] priority, so a live change overtakes the storm of a start. After a
// reconciler has written, its key rests until the reconciler's own view of the
// other system has caught up, so that nothing is decided on what is known to be
// stale; a write that the view does not show in time is looked at again. No
// reconciler runs before every [Gate] is open, and [Controller.Run] returns only
// when every reconciler has returned.
//
// A [Gatherer] stands before the queue and makes one delivery of a burst.
//
// The package knows nothing of what keys name, does no I/O and speaks no third
// party's types. When to run which key is decided by a queue without clock,
// goroutine or lock; [Controller] adds those. All methods may be called from any
// goroutine, and none blocks but Run.
package controller
