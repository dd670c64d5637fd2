// Package leak finds goroutines that tests have left behind.
package leak

import (
	"time"

	"go.uber.org/goleak"

	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// Find is [goleak.Find], which waits for less than half a second by itself, with the patience
// of other tests.
func Find() error {
	for end := time.Now().Add(until.Patience); ; {
		if err := goleak.Find(); err == nil || time.Now().After(end) {
			return err
		}
	}
}
