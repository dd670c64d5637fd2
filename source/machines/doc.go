// Package machines is what registries of machines have in common, whichever cloud they
// run in: which machines a service is found at, what becomes of them, and what stays
// when they cannot be read. A cloud implements [Cloud], in a package of its own.
//
// Services come from the configuration, and from objects if the cloud has some. Each
// names groups of machines: a machine, a set of them, or those that have some tags. In
// each round all groups are read, and everything is listed.
//
// A group that cannot be read keeps the machines of its last reading, and is shown as
// rejected with the reason, and since when. A service with a group that this process has
// never read is rejected whole, so that what is stored of it stays; if nothing is, it has
// the machines of its other groups. If no group can be read, the run ends with the reason.
// A group that the cloud denies by name, twice in a
// row, has no machines; what that lacks is missing, which the supervisor judges.
//
// After a cloud has asked for a pause, nothing is asked of that subscription or account
// before it is over, however long it is, up to [LongestPause]. What defines services is
// read meanwhile, and a change of it is listed with the machines that are known.
//
// A machine that whatever looks after its health gets no answer from stays as it was for
// some readings, and is unhealthy then, unless that holds for all that would be served.
//
// Concurrency: a [Source] belongs to the goroutine that runs it. A [Reader] is used by
// several at once, and all of them end before a round does.
package machines
