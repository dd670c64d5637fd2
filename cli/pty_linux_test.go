package cli_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// newTerminal opens a terminal of 12 rows: what a person sees and types, and what
// a program has.
func newTerminal(t *testing.T) (screen, device *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	unlock, number := int32(0), int32(0)
	size := struct{ rows, columns, x, y uint16 }{rows: 12, columns: 80}
	control(t, screen, syscall.TIOCSPTLCK, unsafe.Pointer(&unlock))
	control(t, screen, syscall.TIOCGPTN, unsafe.Pointer(&number))
	control(t, screen, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	device, err = os.OpenFile("/dev/pts/"+strconv.Itoa(int(number)), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return screen, device
}

func control(t *testing.T, f *os.File, request uintptr, value unsafe.Pointer) {
	t.Helper()
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(value)); errno != 0 {
		t.Fatal(errno)
	}
}

// The demo runs as a person runs it, and the person closes the window.
func TestDemoInAClosedTerminalLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	screen, device := newTerminal(t)
	folder := t.TempDir()
	c := exec.Command("isthmus", "demo") //nolint:noctx // it ends by its terminal
	c.Env = append(os.Environ(), "TMPDIR="+folder, "TERM=xterm")
	c.Stdin, c.Stdout, c.Stderr = device, device, device
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill() }() // it has ended, or the test has failed
	_ = device.Close()
	seen := readUntil(t, screen, "Step 2 of ")
	if !strings.Contains(seen, "\x1b[7A") || strings.Contains(seen, "LAST CHANGE") {
		t.Errorf("it is not drawn for 12 rows:\n%q", seen)
	}
	_ = screen.Close()
	awaitNothingIn(t, c, folder)
}

func TestDemoThatIsEndedLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	// Whoever runs the tests may have them ignore hangups, and so what they start:
	// a program does not inherit what its parent listens for.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	for name, end := range map[string]func(c *exec.Cmd, out *os.File) error{
		"SIGHUP":        func(c *exec.Cmd, _ *os.File) error { return c.Process.Signal(syscall.SIGHUP) },
		"SIGTERM":       func(c *exec.Cmd, _ *os.File) error { return c.Process.Signal(syscall.SIGTERM) },
		"a closed pipe": func(_ *exec.Cmd, out *os.File) error { return out.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			var said bytes.Buffer
			folder := t.TempDir()
			c := exec.Command("isthmus", "demo") //nolint:noctx // it ends by what the test does
			c.Env = append(os.Environ(), "TMPDIR="+folder)
			c.Stdout, c.Stderr = writer, &said
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Process.Kill() }()
			_ = writer.Close()
			readUntil(t, reader, "Step 1 of ")
			if err := end(c, reader); err != nil {
				t.Fatal(err)
			}
			awaitNothingIn(t, c, folder)
			if said.Len() > 0 {
				t.Errorf("it says: %s", said.String())
			}
		})
	}
}

func readUntil(t *testing.T, f *os.File, want string) string {
	t.Helper()
	var seen strings.Builder
	found := make(chan bool, 1)
	go func() {
		b := make([]byte, 4096)
		for !strings.Contains(seen.String(), want) {
			n, err := f.Read(b)
			seen.Write(b[:n])
			if err != nil {
				found <- false
				return
			}
		}
		found <- true
	}()
	select {
	case ok := <-found:
		if !ok {
			t.Fatalf("it ended without %q:\n%s", want, seen.String())
		}
	case <-time.After(until.Patience):
		t.Fatalf("it does not say %q", want)
	}
	return seen.String()
}

// awaitNothingIn waits for the end of a process, which leaves the folder empty.
func awaitNothingIn(t *testing.T, c *exec.Cmd, folder string) {
	t.Helper()
	ended := make(chan struct{})
	go func() { _ = c.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(until.Patience):
		t.Fatal("it does not end")
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) > 0 {
		t.Errorf("it leaves %v behind, error %v", left, err)
	}
}

// On a terminal a watched table is drawn over the one before, within the rows.
func TestWatchedTableFitsATerminal(t *testing.T) {
	t.Parallel()
	asked := 0
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		list := make([]string, 30)
		for i := range list {
			list[i] = fmt.Sprintf(`{"name": "source-%d", "kind": "file", "state": "live", "age": "%ds"}`, i, asked)
		}
		fmt.Fprintf(w, "[%s]", strings.Join(list, ","))
	}))
	defer admin.Close()
	screen, device := newTerminal(t)
	c := exec.Command("isthmus", "sources", "-w", "--admin", admin.URL) //nolint:noctx // it ends by a signal
	c.Env = append(os.Environ(), "TERM=xterm")
	c.Stdin, c.Stdout, c.Stderr = device, device, device
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill() }() // it has ended, or the test has failed
	_ = device.Close()
	seen := readUntil(t, screen, " 2s ")
	if strings.Count(seen, "\x1b[H") != 2 || !strings.Contains(seen, "21 lines more: enlarge the terminal") || strings.Contains(seen, "source-9 ") || !strings.Contains(seen, "source-8 ") {
		t.Errorf("it is not drawn for 12 rows:\n%q", seen)
	}
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	_ = screen.Close()
}
