package hostile

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// allowance is the memory that the program may use.
const allowance = 512 << 20

// limited is a command that the kernel gives no more memory than the allowance.
//
// The limit is RLIMIT_DATA, which on Linux counts all private memory that can
// be written: heap, stacks and what the runtime keeps about them, whether or
// not it has been touched. A Go program that asks for more is rejected and ends
// with "out of memory". It needs no rights, holds in a container as well as
// outside, and does not count the address space that Go merely reserves, for
// which RLIMIT_AS is too crude. A memory cgroup would count the page cache of
// files and need a writable hierarchy; GOMEMLIMIT is a wish and no limit.
//
// What is shown is VmHWM, the most that was in memory, which the kernel keeps
// without anybody having to look in time. It too must be within the allowance,
// so a kernel without that limit still fails the test, only later.
func limited(program string, args ...string) *exec.Cmd {
	script := `ulimit -d "$0" && exec "$@"`
	return exec.Command("sh", append([]string{"-c", script, strconv.Itoa(allowance >> 10), program}, args...)...)
}

// limitInForce reads back what the kernel holds a process to.
func limitInForce(pid int) error {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, "Max data size"); found {
			if fields := strings.Fields(rest); fields[1] == strconv.Itoa(allowance) {
				return nil
			}
			return fmt.Errorf("the limit is %s", strings.TrimSpace(line))
		}
	}
	return fmt.Errorf("/proc/%d/limits has no line for it", pid)
}

// glutton names the variable that makes the test binary one.
const glutton = "ISTHMUS_HOSTILE_GLUTTON"

// swallow takes as many MiB as the variable says.
func swallow() int {
	size, err := strconv.Atoi(os.Getenv(glutton))
	if err != nil {
		return 1
	}
	meal := make([][]byte, size)
	for i := range meal {
		meal[i] = make([]byte, 1<<20)
		meal[i][0] = 1
	}
	runtime.KeepAlive(meal)
	return 0
}
