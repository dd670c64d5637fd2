// Package conflict reports the services that calls do not reach. In each conflict two services
// ask for an address, a server name, a domain or the protocol of a port, and one of them owns it.
//
// A report lays out listeners and domains as packages reach and vhost do for resources, and
// collects the losses. It does so for every namespace that may see the services differently.
// A report is made on demand, so changes cost nothing. The conflicts at a port are cached with
// the port's index until a service of the port changes.
package conflict
