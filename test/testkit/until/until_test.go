package until_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// failing is a test that may fail without failing this one.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// A slow check leaves most of the time to the program that it waits for.
func TestSlowCheckPausesLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, asked := time.Now(), 0
		until.NoError(t, time.Millisecond, "the third time", func() error {
			time.Sleep(time.Second)
			if asked++; asked < 3 {
				return errors.New("not yet")
			}
			return nil
		})
		if took := time.Since(began); took != 11*time.Second {
			t.Errorf("3 checks of 1 s and 2 pauses took %s, want 11 s", took)
		}
	})
}

func TestNoErrorAsksAgainUntilThereIsNoError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, asked := time.Now(), 0
		until.NoError(t, time.Second, "the third time", func() error {
			if asked++; asked < 3 {
				return errors.New("not yet")
			}
			return nil
		})
		if took := time.Since(began); asked != 3 || took != 2*time.Second {
			t.Errorf("asked %d times in %s, want 3 times in 2s", asked, took)
		}
	})
}

func TestNoErrorEndsTheTestWhenPatienceHasRunOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &failing{TB: t}
		began, ended := time.Now(), make(chan struct{})
		go func() {
			defer close(ended)
			until.NoError(f, 3*time.Second, "a wonder", func() error { return errors.New("not yet") })
			f.said = "it went on"
		}()
		<-ended
		if want := "waited 2m0s for a wonder: not yet"; f.said != want {
			t.Errorf("said %q, want %q", f.said, want)
		}
		if took := time.Since(began); took != until.Patience {
			t.Errorf("waited %s, want %s", took, until.Patience)
		}
	})
}
