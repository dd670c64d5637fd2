package istio_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/guide"
)

// operator follows the guide to migration, in which isthmus and kubectl are the
// programs under test.
type operator struct{ *guide.Reader }

func newOperator(t *testing.T, kubeconfig, admin string) *operator {
	t.Helper()
	programs := map[string]string{"isthmus": program, "kubectl": programs.Kubectl()}
	o := &operator{guide.NewReader(t, programs, "KUBECONFIG="+kubeconfig, "ISTHMUS_ADMIN=http://"+admin)}
	t.Cleanup(o.stopIsthmus)
	return o
}

// isthmus is the process that the guide has started; nil if there is none.
func (o *operator) isthmus() *os.Process {
	text, err := os.ReadFile(filepath.Join(o.Dir, "isthmus.pid"))
	if err != nil {
		return nil
	}
	id, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || syscall.Kill(id, 0) != nil || isZombie(id) {
		return nil
	}
	process, err := os.FindProcess(id)
	if err != nil {
		return nil
	}
	return process
}

// isZombie reports whether a process has ended, and nobody has asked how: it is a
// child of a shell that has ended before, and not every machine has an init that asks.
func isZombie(id int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func (o *operator) stopIsthmus() {
	if p := o.isthmus(); p != nil {
		_ = p.Kill()
	}
	if o.T.Failed() {
		log, _ := os.ReadFile(filepath.Join(o.Dir, "isthmus.log"))
		o.T.Logf("--- log of isthmus\n%s", log)
	}
}
