// Package reach decides how workloads reach services through their Envoys: in which form a
// service port is offered, at which listeners it is reached, which filter chains these have,
// and which service owns an address or a server name.
//
// It works over definitions of the catalog and the settings, and makes no messages. A layout
// returns the losers of each conflict together with its decision. All functions are pure.
package reach
