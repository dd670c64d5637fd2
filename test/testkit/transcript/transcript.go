// Package transcript has a log that tests may read while it is written.
package transcript

import (
	"bytes"
	"sync"
)

// Log keeps what is written to it. The zero value is empty. It is safe for concurrent
// use, as several processes and goroutines may write to one.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer]. It has no error.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is all that has been written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
