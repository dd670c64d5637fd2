package streams

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// However the bytes are cut into reads, the streams that they open are counted.
func TestFramesAreCountedHoweverTheyAreCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, want := bytes.Repeat([]byte{opensStream}, prefaceBytes), 0
		for range rapid.IntRange(0, 20).Draw(t, "frames") {
			kind, size := rapid.Byte().Draw(t, "kind"), rapid.IntRange(0, 600).Draw(t, "size")
			text = append(text, 0, byte(size>>8), byte(size), kind, rapid.Byte().Draw(t, "flags"), 0, 0, 0, 1)
			text = append(text, bytes.Repeat([]byte{opensStream}, size)...)
			if kind == opensStream {
				want++
			}
		}
		var f frames
		got := 0
		for len(text) > 0 {
			n := rapid.IntRange(1, min(len(text), 64)).Draw(t, "read")
			got += f.opened(text[:n])
			text = text[n:]
		}
		if got != want {
			t.Fatalf("%d streams are counted, and there are %d", got, want)
		}
	})
}
