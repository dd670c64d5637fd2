// Package term prints the results of commands: tables, JSON and YAML. It has the flags that
// many commands share, and the error that separates a faulty object from wrong usage.
//
// Place in the path: none. It knows neither commands nor the admin API. Nothing in it is
// shared between goroutines.
package term
