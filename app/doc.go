// Package app puts the parts of an Isthmus together. [New] reads from top
// to bottom as the data path does. It knows registries and outputs by their
// interfaces alone: the table of kinds is in package config.
package app
