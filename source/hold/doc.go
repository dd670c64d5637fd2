// Package hold judges drops: it decides which records that a listing lacks are deleted,
// and which are held.
//
// A drop is judged by numbers of endpoints. The mark of a service is the highest number
// that its registry listed within [Config].For; its loss is the mark less the number that
// a listing leaves. A service that has as many endpoints as before has lost none,
// whichever they are. An endpoint that one service gains makes up for none that another
// loses. A record that the same listing has under another name is not lost.
//
// A [Ledger] has the stored records of a source in numbers, its held records, and its
// recent losses. [Ledger.Judge] decides about a listing, [Ledger.Report] about a change,
// which lacks nothing. The [Decision] contains the writes to commit. The caller commits
// these, and tells the ledger: [Ledger.Apply] before the commit, and [Ledger.Committed],
// [Ledger.Reported] or [Ledger.Undo] after it.
//
// Each held record has its own clock. It is deleted once at least three listings that
// span Config.For lacked it, and none in between contained it; or when an operator
// releases it. A hold is stored as [model.Hold] records, which name the held records. The
// held records themselves do not change.
//
// The package is pure: it uses no clock, no store and no goroutine. The caller hands in
// the time and the stored records. A ledger belongs to one goroutine at a time.
package hold
