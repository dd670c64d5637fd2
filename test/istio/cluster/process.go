package cluster

import "github.com/isthmus-mesh/isthmus/test/rig/process"

// Process is a program that runs beside the tests.
type Process = process.Process

// NewProcess describes a process that is not started yet. Its log is a file of
// that name in the folder.
func NewProcess(dir, name, program string, arguments ...string) *Process {
	return process.New(dir, name, program, arguments...)
}
