package file_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// Whatever happens in a folder, and whenever, each change with an event is listed in the
// end, without looking through the folder.
func TestEveryHistoryOfAFolderIsListedInTheEnd(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			onDesk(t, []string{"stays"}, func(d *desk) {
				rng := rand.New(rand.NewPCG(seed, 0))
				for range 60 {
					d.happen(rng, fmt.Sprintf("s%d", rng.IntN(5)))
					time.Sleep(time.Duration(rng.IntN(40)) * time.Millisecond)
				}
				time.Sleep(10 * time.Second)
				d.hasAllFiles()
			})
		})
	}
}

// happen makes one change that concerns a file, and sends its event.
func (d *desk) happen(rng *rand.Rand, service string) {
	d.t.Helper()
	name := service + ".yaml"
	switch rng.IntN(8) {
	case 0, 1, 2:
		d.change(name, service)
		return
	case 3:
		must(d.t, os.Symlink("stays.yaml", filepath.Join(d.dir, ".draft")))
		rename(d.t, d.dir, ".draft", name)
	case 4:
		name = "" // the folder itself, so everything is read
	default:
		must(d.t, os.RemoveAll(filepath.Join(d.dir, name)))
	}
	d.touched(name)
}

// hasAllFiles checks that the services of the files of the folder are listed, and no others.
func (d *desk) hasAllFiles() {
	d.t.Helper()
	synctest.Wait()
	listed := map[string]bool{}
	for ref := range d.state {
		if ref.Kind == model.KindService {
			listed[ref.Name] = true
		}
	}
	for _, service := range []string{"stays", "s0", "s1", "s2", "s3", "s4"} {
		info, err := os.Lstat(filepath.Join(d.dir, service+".yaml"))
		if want := err == nil && info.Mode().IsRegular(); listed[service] != want {
			d.t.Errorf("%s is listed: %t, want %t", service, listed[service], want)
		}
	}
}
