// Package server sets up a Nacos server and runs it. It is version 2.2.4 from
// Maven's repository, without the console, started by the few lines in java/, which
// also has the pins. What is fetched lies in .cache/ of the repository, in a folder
// that is named after everything it was made from.
//
// Some of the ports of a server are open on every address of the machine, and their
// numbers follow from that of the first. So it is run in a network namespace of its
// own, which is the caller's business.
//
// [Setup] is not safe for concurrent use.
package server
