//go:build unix

package feature_test

import "syscall"

// pipe makes a file that blocks whoever opens it.
func pipe(r *registry) { r.must(syscall.Mkfifo(r.At("pipe.yaml"), 0o600)) }
