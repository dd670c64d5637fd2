package memory

import "syscall"

// resourceLimit returns the limit of data (ulimit -d), which Go's heap counts against.
func resourceLimit() (uint64, bool) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_DATA, &limit); err != nil || limit.Cur == ^uint64(0) {
		return 0, false
	}
	return limit.Cur, true
}
