package rig_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/rig/process"
)

// A port that was found free can be listened at, while processes are started beside.
func TestFreeAddressIsFree(t *testing.T) {
	ended := make(chan struct{})
	var starting sync.WaitGroup
	defer starting.Wait()
	defer close(ended)
	for range 4 {
		starting.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
					_ = exec.Command(os.Args[0], "-test.run=^$").Run() //nolint:gosec,noctx // it is this program
				}
			}
		})
	}
	for range 3000 {
		listenOnce(t)
	}
}

// A port that was found free can be listened at while the first process is started, too: a program
// that starts one finds out how that is done here, and forks for it.
func TestFreeAddressIsFreeAtTheFirstStart(t *testing.T) {
	const variable, programs = "ISTHMUS_FIRST_START", 300 // one of a hundred failed
	if os.Getenv(variable) == "" {
		for range programs {
			other := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$") //nolint:gosec // it is this program
			other.Env = append(os.Environ(), variable+"=1")
			if output, err := other.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, output)
			}
		}
		return
	}
	var starting sync.WaitGroup
	for range 4 {
		starting.Go(func() { _ = exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$").Run() }) //nolint:gosec // it is this program
	}
	for range 60 {
		listenOnce(t)
	}
	starting.Wait()
}

// listenOnce listens at an address that was found free.
func listenOnce(t *testing.T) {
	t.Helper()
	address, err := process.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", address) //nolint:noctx // it does not wait
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// A port that one process was given is given to no other, whether it listens already or not.
func TestPortsAreGivenToOneProcess(t *testing.T) {
	const variable, each = "ISTHMUS_GIVE_PORTS", 300
	give := func() (addresses []string) {
		for range each {
			address, err := process.FreeAddress()
			if err != nil {
				t.Fatal(err)
			}
			addresses = append(addresses, address)
		}
		return addresses
	}
	if os.Getenv(variable) != "" {
		fmt.Println(strings.Join(give(), " "))
		_, _ = io.ReadAll(os.Stdin) // keeps them until the other has looked
		return
	}
	const processes = 20 // of 10,000 ports each takes 300: without leases, most overlap
	given := map[string]bool{}
	for range processes {
		other := exec.CommandContext(context.Background(), os.Args[0], "-test.run=^"+t.Name()+"$") //nolint:gosec // it is this program
		other.Env = append(os.Environ(), variable+"=1")
		hold, err := other.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		said, err := other.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = hold.Close()
			_, _ = io.Copy(io.Discard, said)
			if err := other.Wait(); err != nil {
				t.Error(err)
			}
		})
		line, err := bufio.NewReader(said).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		for address := range strings.FieldsSeq(line) {
			if given[address] {
				t.Errorf("%s is given to two processes", address)
			}
			given[address] = true
		}
	}
}
