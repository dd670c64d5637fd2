// Package controller reconciles the objects of another system with their desired state.
// Each object, or group of objects, has a key. A key is reconciled until it succeeds.
//
// The queue holds keys, never payloads. A reconciler is called with a key, and looks up the
// desired and the actual state itself. A key is in the queue once, however often it is
// added. A failed key is retried with growing backoff, and no other key waits for it.
//
// No reconciler runs before every [Gate] is open. Then [Config.Keys] returns the keys of the
// start. They have [Low] priority, so that live changes overtake them. Changes of earlier
// times are dropped: these keys include them. [Status] names the gates that are missing.
//
// Permits bound the work, such as the writes per second. A key without a permit is
// throttled: it waits for one, the most urgent key first. See [Config.Permit],
// [Outcome.Throttled] and [PermitOf]. Every fourth permit goes to the key that has waited
// longest, so that none starves.
//
// After a write, a key waits until the reconciler's view of the other system shows the
// write. So no decision is based on a view that is known to be stale. If the view does not
// show it in time, the key is reconciled again. [Controller.Run] returns only when every
// reconciler has returned.
//
// A [Gatherer] before the queue turns a burst of changes into one delivery.
//
// The output that writes into an API server uses it: output/istio. The package does not
// know what keys name, does no I/O and has no third-party types. Its queue has no clock,
// goroutine or lock, and decides which key is reconciled when. [Controller] adds these. All
// methods may be called from any goroutine, and only Run blocks.
package controller
