// Package leak finds goroutines that tests have left behind.
package leak

import (
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines may take to end that have been ended. It takes them no time
// where the machine is not busy.
const patience = 30 * time.Second

// Find is [goleak.Find], which waits for less than half a second by itself.
func Find() error {
	for end := time.Now().Add(patience); ; {
		if err := goleak.Find(); err == nil || time.Now().After(end) {
			return err
		}
	}
}
