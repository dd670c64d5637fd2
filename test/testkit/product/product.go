// Package product builds the program that is tested.
package product

import (
	"fmt"
	"os"
	"os/exec"
)

// variable names a program that is built already, so that test modules that run one after the
// other link it once. test/parts sets it.
const variable = "ISTHMUS_PROGRAM"

// Build builds isthmus to a path, from the module whose folder is given.
func Build(repository, path string) error {
	if built := os.Getenv(variable); built != "" {
		return copied(built, path)
	}
	// Without the tables of a debugger it is linked in two thirds of the time.
	tool := exec.Command("go", "-C", repository, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", path, "./cmd/isthmus")
	// With cgo each thread has a stack of 8 MiB, of which nearly nothing is used, but all of
	// which counts where memory is limited by RLIMIT_DATA.
	tool.Env = append(tool.Environ(), "CGO_ENABLED=0")
	if out, err := tool.CombinedOutput(); err != nil {
		return fmt.Errorf("building isthmus: %w: %s", err, out)
	}
	return nil
}

func copied(from, to string) error {
	program, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("%s: %w", variable, err)
	}
	return os.WriteFile(to, program, 0o755) //nolint:gosec // Envoys' users run it, too
}
