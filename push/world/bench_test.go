package world

import "testing"

// BenchmarkCache measures a hit, which every resource of every response is.
func BenchmarkCache(b *testing.B) {
	c := newCache(func(Encoded) (heads [Modes][]byte) { return heads }, NewPanics(nil))
	var subject Subject = &benchSubject{}
	c.get(subject, "a")
	b.Run("hit", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.get(subject, "a")
		}
	})
	b.Run("hit-parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				c.get(subject, "a")
			}
		})
	})
}

type benchSubject struct{ _ byte }

func (*benchSubject) Slot() any { return "a" }

func (*benchSubject) Encode() Encoded { return Encoded{Name: "a", Body: []byte("0")} }
