package output

import "slices"

// Memory knows whether whatever was ever served here is of sources that are known.
// A source that is not required may then be missing for ever without anybody having
// anything of it: it was never read.
type Memory struct{ whole bool }

// NewMemory returns that of an output. It is whole from the start if the process began
// with what an earlier one had stored.
func NewMemory(env Env) *Memory {
	m := &Memory{}
	if len(env.Restored) > 0 {
		sources := env.Sources()
		m.whole = slices.ContainsFunc(env.Restored, func(name string) bool { return slices.Contains(sources, name) })
	}
	return m
}

// Published takes note of whether every source is listed, as [Output].Publish has it. Once
// all are, what is read later was not served before. It reports whether the memory is
// whole as of what is published: it is of no use to readers of anything older.
func (m *Memory) Published(complete bool) (whole bool) {
	m.whole = m.whole || complete
	return m.whole
}
