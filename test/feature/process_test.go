package feature_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/product"
)

// process is the program, built and run as users do.
type process struct {
	*exec.Cmd
	isthmus *isthmus // only its addresses and its log; it is not in this process
}

// build builds the program.
func build(t *testing.T) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "isthmus")
	if err := product.Build(filepath.Join("..", ".."), program); err != nil {
		t.Fatal(err)
	}
	return program
}

// startProcess runs "isthmus serve" with a configuration until it serves.
func startProcess(t *testing.T, program, configuration string) process {
	t.Helper()
	file := filepath.Join(t.TempDir(), "isthmus.yaml")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	p := process{exec.CommandContext(context.WithoutCancel(t.Context()), program, "serve", "--config", file), &isthmus{t: t}}
	p.Stderr = &p.isthmus.log
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
		if t.Failed() {
			t.Log(p.isthmus.log.String())
		}
	})
	serving := regexp.MustCompile(`msg=serving xds=(\S+) admin=(\S+)`)
	await(t, "the process to serve", func() error {
		found := serving.FindStringSubmatch(p.isthmus.log.String())
		if found == nil {
			return fmt.Errorf("its log says %q", p.isthmus.log.String())
		}
		p.isthmus.XDS, p.isthmus.Admin = found[1], found[2]
		return nil
	})
	return p
}
