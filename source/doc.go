// Package source mirrors registries into the store.
//
// A [Source] knows one registry: it lists, then follows, and passes on what it
// reads. A [Supervisor] runs it: it compares every completed listing with what
// the store holds for that source and commits the difference, restarts a
// source that failed, and keeps its status. So the rules that must never be
// broken — an error is never an empty list, a bad object poisons only itself —
// are kept in one place for every registry.
//
// Packages below this one (source/file, …) each know one kind of registry. To
// add one, implement the single method of [Source]; package internal/app is
// the only place that must learn of it.
//
// Concurrency: a source runs on one goroutine of its supervisor, and a sink is
// used by that goroutine alone. The status may be read from anywhere.
package source
