package cli_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
)

// The commands here are of the scripts breakages_*.txtar. Each shows of one breakage that
// the commands for operators name it, and that the step they print repairs it.

// condition knows [namespaces].
func condition(name string) (bool, error) {
	if name != "namespaces" {
		return false, fmt.Errorf("unknown condition %q", name)
	}
	probe := exec.Command("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", `mount -t tmpfs none /tmp`) //nolint:noctx // it ends at once
	return probe.Run() == nil, nil
}

var nextCommand = regexp.MustCompile(`(?m)^  next: (?:.*[;,] )?(isthmus [^;\n]*)$`)

// next gives the printed command to a shell, as an operator does.
func next(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: next STATUS")
	}
	printed := nextCommand.FindStringSubmatch(ts.ReadFile("stdout"))
	if printed == nil {
		ts.Fatalf("no next line ends with a command")
	}
	status := 0
	err := ts.Exec("sh", "-c", printed[1])
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		status = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(status) != args[0] {
		ts.Fatalf("%s: exit status %d, not %s", printed[1], status, args[0])
	}
}

// theOther is the key under which a script keeps the server beside its own.
type theOther struct{}

func beside(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: beside FILE")
	}
	other := ts.Value(theOther{}).(*server)
	ts.Check(other.start(ts.MkAbs(args[0])))
	ts.Defer(other.kill)
	ts.Setenv("BESIDE", other.admin)
	ts.Check(other.await("/readyz", "ok"))
}

func depart(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: depart")
	}
	ts.Check(ts.Value(theOther{}).(*server).terminate(ts.MkAbs("beside.log")))
}

// theMuted is the key under which a script keeps the answer of a client that is silent.
type theMuted struct{}

func mute(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: mute ID")
	}
	s := serverOf(ts)
	later, hangUp, err := askForClusters(s.xds, args[0], "")
	ts.Check(err)
	ts.Defer(hangUp)
	*ts.Value(theMuted{}).(*func() error) = later
	ts.Check(s.await("/api/v1/clients", `"state": "waiting"`))
}

func answer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: answer")
	}
	ts.Check((*ts.Value(theMuted{}).(*func() error))())
	ts.Check(serverOf(ts).await("/api/v1/clients", `"state": "accepted"`))
}

func disk(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: disk SIZE FOLDER")
	}
	serverOf(ts).room = []string{args[0], ts.MkAbs(args[1])}
}

// filler is the file that fills a server's file system, which only that process sees.
func filler(ts *testscript.TestScript, neg bool, args []string) string {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: fill or empty FOLDER")
	}
	root := fmt.Sprintf("/proc/%d/root", serverOf(ts).process.Process.Pid)
	return filepath.Join(root, ts.MkAbs(args[0]), "filler")
}

// zeros never end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

func fill(ts *testscript.TestScript, neg bool, args []string) {
	file, err := os.Create(filler(ts, neg, args))
	ts.Check(err)
	defer file.Close()
	const far = 1 << 30 // beyond any disk of a script, for it must not fill another one
	if n, err := io.CopyN(file, zeros{}, far); err == nil {
		ts.Fatalf("the disk took %d bytes", n)
	}
}

func empty(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(os.Remove(filler(ts, neg, args)))
}
