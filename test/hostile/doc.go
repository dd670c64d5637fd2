// Package hostile attacks the real program while a good client follows every
// change of a registry, and holds the program to what it owes that client.
//
//	make hostile                # every attack at full size; those that mostly wait beside each other
//	make hostile ATTACK=names   # those whose name has this in it
//	go test ./test/hostile      # all of them small, in seconds
//
// An attack is one row of the table in attacks_test.go and one function. Each
// has a process of its own that may use 512 MiB (memory_test.go), a registry of
// its own, and a good client that is as strict as the protocol is. First the
// good client follows changes alone, then beside the attack. What fails a row:
//
//   - the program needs more than 512 MiB, panics, or ends;
//   - the good client loses its connection, is sent anything it must not be
//     sent, or does not get two changes while the attack goes on, which is made again
//     until it has them;
//   - /readyz says no while the attack goes on;
//   - afterwards there is more than the good client, there are more goroutines
//     than before, or the good client holds anything but what the registry says.
//
// Rows named mcp- attack that port in the same ways, and a good sink of it must end with
// everything on the stream that it began with. Rows named watch- attack the watch of records.
// In the rows of peers the program is the client, and what its sources read is hostile. A teller is a registry that keeps to its
// protocol, and lists what must not reach clients as it is.
//
// What the server turns away is no harm: the table shows it beside the rest, so
// that an attack that never got through is not taken for one that was borne.
//
// The package reads /proc, so it needs Linux. All traffic is on loopback, whose
// addresses the server does not count connections or streams of: limits by
// address do not help the program here.
package hostile
