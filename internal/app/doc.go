// Package app puts the parts of an Isthmus together. It is the only place that
// knows every concrete type: [New] reads from top to bottom as the data path
// does, and a new kind of registry or output is one more line in it.
package app
