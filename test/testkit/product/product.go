// Package product builds the program that is tested.
package product

import (
	"fmt"
	"os/exec"
)

// Build builds isthmus to a path, from the module whose folder is given.
func Build(repository, path string) error {
	// Without what a debugger needs it is linked in two thirds of the time.
	tool := exec.Command("go", "-C", repository, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", path, "./cmd/isthmus")
	// With cgo each thread has a stack of 8 MiB, of which nearly nothing is used, but all of
	// which counts where memory is limited by RLIMIT_DATA.
	tool.Env = append(tool.Environ(), "CGO_ENABLED=0")
	if out, err := tool.CombinedOutput(); err != nil {
		return fmt.Errorf("building isthmus: %w: %s", err, out)
	}
	return nil
}
