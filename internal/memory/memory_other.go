//go:build !linux

package memory

// resourceLimit is read on Linux only.
func resourceLimit() (uint64, bool) { return 0, false }
