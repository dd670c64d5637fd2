// Package get has the command that prints and watches the records of a running Isthmus. It
// reads them from outputs.watch, through a replica of package client.
//
// Place in the path: outside. The command prints known records only: while Isthmus waits for
// sources, it names them on the error output and prints nothing else.
package get
