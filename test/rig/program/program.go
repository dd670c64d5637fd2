// Package program builds programs for tests that run them as users do.
package program

import (
	"fmt"
	"os/exec"
)

// Isthmus is the package of the product's program, in its repository.
const Isthmus = "./cmd/isthmus"

// Build builds the program of a package to a path. Module is the folder of the package's
// module.
func Build(module, pkg, path string) error {
	// Without the tables of a debugger it is linked in two thirds of the time.
	tool := exec.Command("go", "-C", module, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", path, pkg)
	// With cgo each thread has a stack of 8 MiB, which is hardly used, but counts where
	// RLIMIT_DATA limits memory.
	tool.Env = append(tool.Environ(), "CGO_ENABLED=0")
	if out, err := tool.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w: %s", pkg, err, out)
	}
	return nil
}
