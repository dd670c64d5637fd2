package cli_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

func full(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: full COMMAND...")
	}
	device, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	ts.Check(err)
	defer device.Close()
	state, said := printingTo(ts, device, args)
	if state.ExitCode() != 1 || !strings.Contains(said, "no space left on device: not everything was printed; make room") {
		ts.Fatalf("%s, saying: %s", state, said)
	}
}

func unread(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: unread COMMAND...")
	}
	reader, writer, err := os.Pipe()
	ts.Check(err)
	ts.Check(reader.Close())
	defer writer.Close()
	state, said := printingTo(ts, writer, args)
	how, _ := state.Sys().(syscall.WaitStatus)
	if said != "" || how.Signal() != syscall.SIGPIPE && state.ExitCode() != 128+int(syscall.SIGPIPE) {
		ts.Fatalf("%s, saying: %s", state, said)
	}
}

// printingTo runs a command to its end.
func printingTo(ts *testscript.TestScript, out *os.File, args []string) (*os.ProcessState, string) {
	var said bytes.Buffer
	c := command(ts, args)
	c.Stdout, c.Stderr = out, &said
	if err := c.Run(); c.ProcessState == nil {
		ts.Check(err)
	}
	return c.ProcessState, said.String()
}

// command is one of a script, in its folder and with its environment.
func command(ts *testscript.TestScript, args []string) *exec.Cmd {
	c := exec.Command(args[0], args[1:]...) //nolint:noctx // it ends by itself or by a signal
	c.Dir = ts.MkAbs(".")
	c.Env = append(os.Environ(), "ISTHMUS_ADMIN="+ts.Getenv("ISTHMUS_ADMIN"), "SILENCE="+ts.Getenv("SILENCE"), "TMPDIR="+ts.Getenv("TMPDIR"))
	return c
}
