// Package supervise mirrors registries into the store.
//
// A [Supervisor] runs one [source.Source]. It compares every completed listing with the
// stored records of that source and commits the difference. It restarts a failed source,
// and keeps its status. So two rules hold in one place for every registry: an error is
// never an empty list, and a bad object poisons only itself.
//
// A listing takes this way: package reading checks it and compares it with the stored
// records, package hold decides about the records that it lacks, and the mirror commits
// the decision with its Hold records and the judgements of baselines. A change lacks
// nothing, so no drop is judged: its difference is committed at once.
//
// Concurrency: a source runs on one goroutine of its supervisor, and only that goroutine
// uses a sink. One writer at a time uses the mirror: the present run, or an order of an
// operator or an output. The status may be read from anywhere.
package supervise
