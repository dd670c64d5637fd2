// Package session is the state of one client's stream, and what is sent next.
//
// A [Stream] has a [State] for each type that the client asked for. A state has four parts,
// each with rules of its own: the subscription and the inventory (which names the client
// asks for, and which version of each it holds), the agenda (which names are still to be
// considered, and what others wait for), the NACKs, and the responses in flight.
//
// Requests, ACKs, NACKs and marks of changed names alter the state. [Advance] compares it
// with a [Look] at the worlds of all producers, and yields the responses to send, type by
// type, in the order of delivery.
//
// The package has no lock, no goroutine, no clock and no I/O: a stream and its states belong
// to one goroutine at a time, and the time is passed in. It knows no engine and no other
// stream. Of a producer's code only the look-ups of a look's worlds run in it.
package session
