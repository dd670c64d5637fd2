package output

import (
	"slices"
	"sync/atomic"
)

// Memory knows whether whatever was ever served here is of sources that are known.
// A source that is not required may then be missing for ever without anybody having
// anything of it: it was never read.
type Memory struct{ whole atomic.Bool }

// NewMemory returns that of an output. It is whole from the start if the process began
// with what an earlier one had stored.
func NewMemory(env Env) *Memory {
	m := &Memory{}
	if len(env.Restored) > 0 {
		sources := env.Sources()
		m.whole.Store(slices.ContainsFunc(env.Restored, func(name string) bool { return slices.Contains(sources, name) }))
	}
	return m
}

// Published takes note of whether every source is listed, as [Output].Publish has it. Once
// all are, what is read later was not served before.
func (m *Memory) Published(complete bool) {
	if complete {
		m.whole.Store(true)
	}
}

// IsWhole reports whether it is. Anybody may call it.
func (m *Memory) IsWhole() bool { return m.whole.Load() }
