package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// tools are the programs that set up networks in tests, and their packages on Debian.
var tools = map[string]string{"iptables": "iptables", "ip6tables": "iptables", "ip": "iproute2"}

// install installs those that are missing.
func install(ctx context.Context, log io.Writer) error {
	for program, name := range tools {
		if _, err := exec.LookPath(program); err == nil {
			continue
		}
		for _, command := range []string{"apt-get update", "apt-get install -y --no-install-recommends " + name} {
			words := strings.Fields(command)
			tool := exec.CommandContext(ctx, words[0], words[1:]...)
			tool.Stdout, tool.Stderr = log, log
			if err := tool.Run(); err != nil {
				return fmt.Errorf("%s: %w\ninstall the package %s, without which tests of redirected connections cannot run", command, err, name)
			}
		}
	}
	return nil
}
