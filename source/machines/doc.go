// Package machines is the common part of registries of machines, whichever cloud they
// run in. It finds the machines of a service, follows their states, and decides which
// machines stay when they cannot be read. A cloud implements [Cloud], in a package of
// its own.
//
// Services come from the configuration, and from objects if the cloud has some. Each
// service names groups of machines: a machine, a set of them, or a selection by tags.
// Each round reads all groups and lists everything.
//
// A group that cannot be read keeps the machines of its last reading. The source
// shows it as rejected, with the reason and the time since when. A service with a
// group that this process has never read is rejected whole, so that its stored
// records stay. If no record is stored, the service gets the machines of its other
// groups. If no group can be read, the run ends with the reason. A group that the
// cloud denies by name twice in a row has no machines. The supervisor judges the drop
// that follows.
//
// After a cloud has asked for a pause, that subscription or account receives no
// request until the pause is over. The pause is at most [LongestPause]. Definitions
// of services are read meanwhile; a changed definition is listed with the machines
// already known.
//
// A machine that does not answer its health check keeps its state for some readings
// and is unhealthy then. An exception: while no machine of the group is serving, the
// state is kept.
//
// Concurrency: a [Source] belongs to the goroutine that runs it. Several goroutines
// use a [Reader] at once, and all of them end before a round does.
package machines
