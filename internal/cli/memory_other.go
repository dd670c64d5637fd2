//go:build !linux

package cli

// resourceLimit is read on Linux only.
func resourceLimit() (uint64, bool) { return 0, false }
