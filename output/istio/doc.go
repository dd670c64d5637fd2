// Package istio writes the catalog into a Kubernetes API server, as the ServiceEntry
// objects, and if enabled the Sidecar and DestinationRule objects, that Istio reads.
//
// Package convert/istio decides the content of an object. This package decides which
// objects are written, and when, in packages of its own: translate (the desired objects), view
// (the observed ones), plan (the actions, from both and from facts about the sources) and
// write (which carries them out). lease elects the replica that writes. A [Writer] joins
// them, brings the objects to the planned state and keeps them there:
//
//	w, err := istio.New(config, istio.Options{Instance: "isthmus", Log: log})
//	gate := gate.New(required, optional, wait, w.Publish)
//	w.Run(ctx) // writes until ctx ends, while this replica leads
//	w.Status() // at any time
//
// [Writer.Plan] returns the actions that would be taken, with reasons, and writes nothing.
//
// The writer touches only objects that carry both labels of its instance. It writes
// differences only, by server-side apply. Each write has the precondition that the object
// has not changed since the difference was found. A replica that lost its lease in the
// middle of a write therefore undoes nothing. It deletes no object of a source that has not
// been listed since the start. If the first listing of a source suspiciously lacks objects
// of the API server, the missing part is not deleted either. An object that is rejected, or
// in conflict, is retried by itself, and is shown with the reason. Manual changes by others
// are reverted.
//
// Place in the path: it takes snapshots as the xDS output does, and hands keys to a
// [controller.Controller]. [Writer.Run] owns all goroutines and returns when they have
// ended; every other method may be called from any goroutine.
package istio
