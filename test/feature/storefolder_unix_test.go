//go:build unix

package feature_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// shows waits until /readyz?verbose, which has to say that the process is ready, contains a text.
func (i *isthmus) shows(what, text string) {
	i.t.Helper()
	await(i.t, what, func() error {
		code, body, err := i.get("/readyz?verbose")
		if err != nil || code != 200 || !strings.Contains(body, text) {
			return fmt.Errorf("%d %s, error %w", code, body, err)
		}
		return nil
	})
}

// The folder of the store is taken away from the running program, and is not given back, or
// a file in the new one never answers. The program shows that and goes on serving. Once
// the disk is well, everything is in the folder again, with the name of the program.
func TestAStoreFolderThatIsLostIsShownAndRepaired(t *testing.T) {
	t.Parallel()
	program := build(t)
	for name, spoil := range map[string]func(t *testing.T, dir string) (mend func() error){
		"removed": func(t *testing.T, dir string) func() error {
			t.Helper()
			if err := os.WriteFile(dir, nil, 0o600); err != nil { // where the folder was
				t.Fatal(err)
			}
			return func() error { return os.Remove(dir) }
		},
		"hangs": func(t *testing.T, dir string) func() error {
			t.Helper()
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			pipe := filepath.Join(dir, "name")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			return func() error { return os.WriteFile(pipe, []byte("another\n"), 0o600) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, b, dir := newRegistry(t, "files"), startBackends(t, "one", "two"), filepath.Join(t.TempDir(), "state")
			files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])})
			p := startProcess(t, program, saving(loopback, dir, files)).isthmus
			p.shows("all to be saved", "store: revision 1 of 1 is on disk, 0s behind\n")
			self, err := os.ReadFile(filepath.Join(dir, "name"))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(dir, dir+".away"); err != nil {
				t.Fatal(err)
			}
			mend := spoil(t, dir)
			p.shows("the loss to be shown", "; for ")
			p.shows("the loss to last", "store: revision 0 of 1 is on disk, ")
			files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[1])})
			dial(t, p, reviews+":80", "shop").AwaitAnswers("two")
			p.shows("the change to be not saved", "store: revision 0 of 2 is on disk, ")
			if err := mend(); err != nil {
				t.Fatal(err)
			}
			p.shows("all to be saved again", "store: revision 2 of 2 is on disk, 0s behind\n")
			if now, err := os.ReadFile(filepath.Join(dir, "name")); err != nil || string(now) != string(self) {
				t.Errorf("its name is %q, error %v, want %q", now, err, self)
			}
			for _, end := range p.clients {
				end()
			}
		})
	}
}
