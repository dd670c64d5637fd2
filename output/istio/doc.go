// Package istio writes the catalog into a Kubernetes API server, as the
// ServiceEntry objects, and if asked the Sidecar objects, that Istio reads.
//
// Package convert/istio decides the content of an object. This package decides which
// objects are written, and when. Its files are in three parts, by the beginning of
// their names: plan (the desired objects, the difference, and what has to wait), view
// (the API server's objects, in short) and write (the writes, and leader election). A
// [Writer] brings the objects to the planned state and keeps them there:
//
//	w, err := istio.New(config, istio.Options{Instance: "isthmus", Log: log})
//	gate := catalog.NewGate(required, optional, wait, w.Publish)
//	w.Run(ctx) // writes until ctx ends, while this replica leads
//	w.Status() // at any time
//
// [Writer.Plan] says what would be written, and why, and writes nothing.
//
// The writer touches only objects that carry both labels of its instance. It
// writes differences only, by server-side apply. Each write has the precondition
// that the object is as it was when the difference was found, so a replica that lost
// its lease in the middle of a write undoes nothing. It deletes no object of a source
// that has not been listed since the start. If the first listing of a source
// suspiciously lacks what the API server has, the missing part is not deleted either.
// An object that is rejected, or in conflict, is tried again by itself, and is shown
// with the reason. What others change by hand is restored.
//
// Place in the path: it takes snapshots as the xDS output does, and hands keys
// to a [controller.Controller]. [Writer.Run] owns all goroutines and returns
// when they have ended; every other method may be called from any goroutine.
package istio
