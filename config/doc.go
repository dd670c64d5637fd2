// Package config loads, expands and validates the configuration file.
//
// The file is strict YAML: an unknown key, a key given twice, a value of the
// wrong type is an error, and every error says where it stands and how to fix
// it. All errors are found in one go. Each package owns its part of the
// configuration and validates it. This package puts the parts together, so it shows
// everything that can be configured.
//
// Loading has no side effects and needs no network.
package config
