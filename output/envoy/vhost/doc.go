// Package vhost makes the virtual hosts of a port, and the names that DNS answers. It decides
// which service owns a domain for which viewers.
//
// A virtual host is encoded once as a fragment, which views share. The hosts of a port are
// made from those before a change, so a change costs the fragments of its services. Values are
// immutable but for fragments, which are made on first use; they are safe for concurrent use.
package vhost
