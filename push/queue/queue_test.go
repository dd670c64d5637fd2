package queue

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// lines is the queue as it would be with all the time in the world.
type lines struct {
	urgent, ordinary []*Place[int]
	turns            int                 // of urgent ones since that of an ordinary one
	waited           map[*Place[int]]int // turns of others since an ordinary one came
	ahead            map[*Place[int]]int // ordinary ones that were before it
}

func (l *lines) add(s *Place[int], urgent bool) {
	if slices.Contains(l.urgent, s) || !urgent && slices.Contains(l.ordinary, s) {
		return
	}
	if !urgent {
		l.waited[s], l.ahead[s] = 0, len(l.ordinary)
		l.ordinary = append(l.ordinary, s)
		return
	}
	l.ordinary = slices.DeleteFunc(l.ordinary, func(o *Place[int]) bool { return o == s })
	l.urgent = append(l.urgent, s)
}

// Whatever comes when, those with something urgent go first, each line is in order,
// and nobody is lost or taken by two. No ordinary one waits for more turns than
// Overtakes allows.
func TestQueueIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, model := New[int](), lines{waited: map[*Place[int]]int{}, ahead: map[*Place[int]]int{}}
		all := make([]*Place[int], 12)
		for i := range all {
			all[i] = &Place[int]{Owner: i}
		}
		working := map[*Place[int]][]bool{} // what came up since, urgent or not
		take := func() {
			if len(model.urgent)+len(model.ordinary) == 0 {
				return
			}
			s, _ := q.Take()
			switch {
			case len(model.urgent) > 0 && s == model.urgent[0]:
				model.urgent = model.urgent[1:]
				model.turns++
				for _, o := range model.ordinary {
					if model.waited[o]++; model.waited[o] > (model.ahead[o]+1)*(Overtakes+1)-1 {
						t.Fatalf("an ordinary one with %d before it waits for %d turns", model.ahead[o], model.waited[o])
					}
				}
			case len(model.ordinary) > 0 && s == model.ordinary[0]:
				model.ordinary = model.ordinary[1:]
				if len(model.urgent) > 0 && model.turns < Overtakes {
					t.Fatalf("an ordinary one had its turn %d turns after another, while %d with something urgent wait", model.turns, len(model.urgent))
				}
				model.turns = 0
				for _, o := range model.ordinary {
					model.waited[o]++
				}
			default:
				t.Fatal("somebody was taken out of turn")
			}
			working[s] = nil
		}
		for range rapid.IntRange(0, 200).Draw(t, "events") {
			s := rapid.SampledFrom(all).Draw(t, "who")
			_, taken := working[s]
			switch what := rapid.IntRange(0, 5).Draw(t, "what"); {
			case what == 0 && taken:
				q.Done(s)
				if since := working[s]; len(since) > 0 {
					model.add(s, slices.Contains(since, true))
				}
				delete(working, s)
			case what <= 2:
				take()
			default:
				urgent := what == 5
				q.Add(s, urgent)
				if taken {
					working[s] = append(working[s], urgent)
				} else {
					model.add(s, urgent)
				}
			}
		}
		for s, since := range working {
			q.Done(s)
			if len(since) > 0 {
				model.add(s, slices.Contains(since, true))
			}
		}
		clear(working)
		for len(model.urgent)+len(model.ordinary) > 0 {
			take()
		}
		if q.urgent.first != nil || q.ordinary.first != nil {
			t.Fatal("somebody is left in the queue")
		}
	})
}
