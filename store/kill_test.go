//go:build unix

package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/isthmus-mesh/isthmus/model"
)

// childFolder tells the test binary to be a process that is killed, and
// childUnsynced one that never syncs.
const (
	childFolder   = "ISTHMUS_TEST_STORE_FOLDER"
	childUnsynced = "ISTHMUS_TEST_STORE_UNSYNCED"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childFolder); dir != "" {
		commit := commitUntilKilled
		if os.Getenv(childUnsynced) != "" {
			commit = writeUntilKilled
		}
		if err := commit(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// width is the number of records that every commit changes together. They are
// long enough that a commit is written in several parts.
const width = 20

// commitUntilKilled changes all records together, over and over, with a new
// snapshot every few commits. It tells what it restored, then each revision
// that is said to be on disk.
func commitUntilKilled(dir string) error {
	d, err := OpenDisk(DiskConfig{Dir: dir})
	if err != nil {
		return err
	}
	d.tuning.gather = time.Millisecond
	d.tuning.minJournal = 300 << 10
	if damage := d.Restored().Damage; damage != nil {
		return damage
	}
	n, err := generation(d.Store())
	if err != nil {
		return err
	}
	fmt.Println("restored", n)
	go func() { fmt.Println(d.Run(context.Background())) }()
	for {
		n++
		if err := commitTogether(d.Store(), n); err != nil {
			return err
		}
		fmt.Println("saved", d.Saving().Saved.Revision)
	}
}

// writeUntilKilled is commitUntilKilled by a process that syncs nothing: it tells
// each revision that it has handed to the operating system.
func writeUntilKilled(dir string) error {
	tuning := defaultTuning()
	tuning.gather, tuning.look = time.Hour, time.Hour
	d, err := openDisk(DiskConfig{Dir: dir}, tuning, diskFiles{})
	if err != nil {
		return err
	}
	if damage := d.Restored().Damage; damage != nil {
		return damage
	}
	n, err := generation(d.Store())
	if err != nil {
		return err
	}
	fmt.Println("restored", n)
	go func() { fmt.Println(d.Run(context.Background())) }()
	for {
		n++
		if err := commitTogether(d.Store(), n); err != nil {
			return err
		}
		for d.Saving().Written.Revision < uint64(n) {
			runtime.Gosched()
		}
		fmt.Println("saved", n)
	}
}

// commitTogether makes commit n: every record says n, but one in turn is
// deleted, so that deletes are saved as well.
func commitTogether(m *Memory, n int) error {
	var c model.Commit
	for i := range width {
		r := noteOf(strconv.Itoa(i), strconv.Itoa(n)+strings.Repeat(" ", 1000))
		stored, ok := m.Get(r.Ref)
		r.Revision = stored.Revision
		if i == n%width {
			if ok {
				c.Writes = append(c.Writes, model.Write{Record: r, Delete: true})
			}
			continue
		}
		c.Writes = append(c.Writes, model.Write{Record: r})
	}
	_, err := m.Commit(context.Background(), c)
	return err
}

// generation returns n if the store holds exactly what commit n left.
func generation(m *Memory) (n int, err error) {
	n = int(m.Revision())
	for i := range width {
		r, ok := m.Get(noteOf(strconv.Itoa(i), "").Ref)
		if want := n > 0 && i != n%width; ok != want {
			return 0, fmt.Errorf("revision %d: record %d is stored: %t", n, i, ok)
		}
		if ok && (strings.TrimSpace(r.Spec.(model.Opaque).Content) != strconv.Itoa(n) || r.Revision != uint64(n)) {
			return 0, fmt.Errorf("revision %d: record %d says %.10q of revision %d", n, i, r.Spec, r.Revision)
		}
	}
	return n, nil
}

// A process that commits without pause is killed at random moments, again and
// again. What the next one finds is exactly what one commit left, and never
// less than what was said to be on disk.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	kills := 50
	if testing.Short() {
		kills = 10
	}
	killAgainAndAgain(t, kills)
}

// A process that is killed loses nothing that it committed before, but for the
// commit that is being written, though it has synced nothing.
func TestKilledBeforeAnythingIsSynced(t *testing.T) {
	t.Parallel()
	killAgainAndAgain(t, 10, childUnsynced+"=yes")
}

func killAgainAndAgain(t *testing.T, kills int, env ...string) {
	t.Helper()
	dir := t.TempDir()
	var saved, restored int
	for i := 0; i < kills || restored == 0 && i < 20*kills; i++ {
		child := startChild(t, dir, env...)
		if got := child.read(t, "restored"); got < saved {
			t.Fatalf("start %d: restored revision %d, and %d was on disk", i+1, got, saved)
		} else if restored = got; got > saved {
			saved = got
		}
		life := time.Duration(rand.N(60+10*i)) * time.Millisecond // longer and longer, until one saves something
		timer := time.AfterFunc(life, func() { _ = child.cmd.Process.Kill() })
		saved = max(saved, child.lastSaved(t))
		timer.Stop()
	}
	d, err := OpenDisk(DiskConfig{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	n, err := generation(d.Store())
	if err != nil || d.Restored().Damage != nil || n < saved {
		t.Errorf("at the end: revision %d of %d, error %v, damage %v", n, saved, err, d.Restored().Damage)
	}
	if restored == 0 {
		t.Error("no child ever saved anything")
	}
	t.Logf("%d commits survived %d kills", n, kills)
}

type child struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	err   strings.Builder
}

func startChild(t *testing.T, dir string, env ...string) *child {
	t.Helper()
	c := &child{cmd: exec.CommandContext(t.Context(), os.Args[0])}
	c.cmd.Env = append(append(os.Environ(), childFolder+"="+dir), env...)
	c.cmd.Stderr = &c.err
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.lines = bufio.NewScanner(io.Reader(out))
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// read returns the number on the next line, which must begin with a word.
func (c *child) read(t *testing.T, word string) int {
	t.Helper()
	if !c.lines.Scan() {
		t.Fatalf("the child ended: %v: %s", c.cmd.Wait(), c.err.String())
	}
	number, ok := strings.CutPrefix(c.lines.Text(), word+" ")
	n, err := strconv.Atoi(number)
	if !ok || err != nil {
		t.Fatalf("the child says %q", c.lines.Text())
	}
	return n
}

// lastSaved reads on until the child is killed.
func (c *child) lastSaved(t *testing.T) (last int) {
	t.Helper()
	for c.lines.Scan() {
		number, _ := strings.CutPrefix(c.lines.Text(), "saved ")
		if n, err := strconv.Atoi(number); err == nil { // the last line may be cut
			last = max(last, n)
		}
	}
	err := c.cmd.Wait()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the child was not killed: %v: %s", err, c.err.String())
	}
	return last
}

// A second process is shown who has the folder, and gets it when that one is
// gone, even if it was killed.
func TestAProcessOwnsItsFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	child := startChild(t, dir)
	child.read(t, "restored")
	_, err := OpenDisk(DiskConfig{Dir: dir})
	inUse, ok := errors.AsType[*InUseError](err)
	if !ok || inUse.Holder != strconv.Itoa(child.cmd.Process.Pid) || !strings.Contains(err.Error(), inUse.Holder) {
		t.Errorf("error %v, want one that names process %d", err, child.cmd.Process.Pid)
	}
	if err := child.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	child.lastSaved(t)
	d, err := OpenDisk(DiskConfig{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
}
