// Package config loads, expands and validates the configuration file.
//
// The file is strict YAML: an unknown key, a duplicate key or a value of the wrong type is
// an error. Every error has its position and a fix. All errors are found in one pass. Each
// package owns its part of the configuration and validates it. This package puts the parts
// together, so it shows everything that can be configured.
//
// Loading has no side effects and needs no network.
package config
