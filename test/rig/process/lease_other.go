//go:build !linux

package process

// lease takes nothing where sockets have no abstract names.
func lease(int) (socket int, ok bool) { return 0, true }

func endLease(int) {}
