//go:build !race

// Under the race detector the test's own program is the glutton, and the
// detector's shadow of its memory is more than the limit by itself. What is
// attacked is built without it in any case.

package hostile

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// The limit is shown to be one: a Go program that stays below it lives, and
// one that does not is ended.
func TestMemoryLimitIsHard(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		mib   int
		lives bool
	}{{allowance >> 21, true}, {allowance>>20 + 1, false}} {
		command := limited(os.Args[0])
		command.Env = append(os.Environ(), glutton+"="+strconv.Itoa(test.mib))
		out, err := command.CombinedOutput()
		if lives := err == nil; lives != test.lives {
			t.Errorf("a program that takes %d MiB lives: %t, want %t\n%s", test.mib, lives, test.lives, out)
		}
		if !test.lives && !strings.Contains(string(out), "out of memory") {
			t.Errorf("a program that takes %d MiB ended for another reason: %v\n%.500s", test.mib, err, out)
		}
	}
}
