package push

import (
	"testing"
	"testing/synctest"
)

// A client may say twice that it refuses something, or refuse what it was never sent.
func TestRefusalOfNothing(t *testing.T) {
	for _, typ := range []Type{wholes, parts} {
		synctest.Test(t, func(t *testing.T) {
			e := run(t, Config{})
			e.publish(many(3), typ)
			<-e.Primed()
			s := connected(e, WholeState, typ, namesOf(3)...)
			r := s.receive()
			s.refuse(r)
			s.refuse(r)
			r.Serial += 100
			s.refuse(r)
			nothingComes(t, s)
			if n := s.status().Types[0].Refusals; n != 1 {
				t.Errorf("%d refusals were noted", n)
			}
		})
	}
}
