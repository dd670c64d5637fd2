// Package config loads, expands and validates the configuration file.
//
// The file is strict YAML: an unknown key, a duplicate key or a value of the wrong type is
// an error. All errors are reported at once, each with its line and a fix. Each package owns
// its part of the configuration and validates it; this package combines the parts. [Known]
// is the table of all kinds of sources and outputs.
//
// Place in the path: the application loads a [Config] at the start and after each change,
// which [Followed] reports. A load reads files and environment variables, opens no connection
// and has no side effects.
//
// Concurrency: all functions may be called from any goroutine. A [Config] does not change
// once it is loaded, so it may be shared.
package config
