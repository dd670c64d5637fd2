// Package laws holds the laws of the whole application by random histories: registries
// change and fail, sources and clients come and go, and the process is stopped, killed and
// reloaded. All of it runs on a machine in memory, in virtual time.
package laws
