package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnitOfSystemdIsValid has systemd itself look, where there is one.
func TestUnitOfSystemdIsValid(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze here")
	}
	text, err := os.ReadFile("../../deploy/systemd/isthmus.service")
	if err != nil {
		t.Fatal(err)
	}
	// The binary need not be installed where this is tested.
	unit := filepath.Join(t.TempDir(), "isthmus.service")
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(string(text), "/usr/bin/isthmus", "/bin/true")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), analyze, "verify", unit).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// What serve waits for, such as a registry's folder that is mounted later, must
// not keep the service from starting.
func TestUnitOfSystemdServesAndChecksNothingBefore(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/systemd/isthmus.service")
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "Exec") {
			commands = append(commands, strings.TrimSpace(line))
		}
	}
	if want := "ExecStart=/usr/bin/isthmus serve --config /etc/isthmus/isthmus.yaml|ExecReload=/bin/kill -HUP $MAINPID"; strings.Join(commands, "|") != want {
		t.Errorf("it runs %q, want %q", commands, want)
	}
}
