package mcp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	programs "github.com/isthmus-mesh/isthmus/test/rig/program"
)

// patience is how long a test waits for what must come about. It is a great
// deal more than it takes, for the machine may be busy with other things.
const patience = 3 * time.Minute

// program is isthmus.
var program string

func TestMain(m *testing.M) {
	status, err := run(m)
	if err == nil && status == 0 {
		err = left()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

func run(m *testing.M) (status int, err error) {
	dir, err := os.MkdirTemp("", "isthmus-mcp-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "isthmus")
	if err := programs.Build(filepath.Join("..", ".."), programs.Isthmus, program); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// left is goroutines that have not ended. goleak waits for less than half a second, which
// is little where the machine is busy.
func left() error {
	for end := time.Now().Add(patience); ; {
		if err := goleak.Find(); err == nil || time.Now().After(end) {
			return err
		}
	}
}

// await asks again and again until there is no error.
func await(t testing.TB, what string, check func() error) {
	t.Helper()
	until := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("waited %s for %s: %v", patience, what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
