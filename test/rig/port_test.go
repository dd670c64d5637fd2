package rig_test

import (
	"net"
	"os"
	"os/exec"
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
}
