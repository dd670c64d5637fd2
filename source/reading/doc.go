// Package reading checks the listings and changes of a source, and compares them with
// the stored records.
//
// A [Reading] contains the valid records of a [model.Listing] or [model.Change], and a
// rejection for every invalid one. [Reading.Compare] returns the difference to the stored
// records: the records to write, and the stored records that the reading lacks. It does
// not decide whether a lacking record is deleted: see package hold.
//
// Place: package supervise calls it for each message of a source, before package hold. The
// package is pure: it uses no clock, no store and no goroutine. A reading belongs to one
// goroutine at a time.
package reading
