// Package leds puts the endpoints of large service ports into collections, one for each locality.
// Envoys subscribe to the members of a collection one by one (LEDS).
//
// A [Maker] makes the [Set] of each snapshot from the set before. A collection keeps a journal of
// its changes, by which output/envoy sends each client the members that it lacks. Sets and
// collections are immutable. A maker has one caller at a time.
package leds
