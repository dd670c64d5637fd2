package events_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/internal/events"
)

// A reader that asks for what came after its last serial gets every event once, in order,
// or is given the number of those that it missed.
func TestEveryEventIsReadOnceOrCountedAsLost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		log, added, seen := events.New(), uint64(0), uint64(0)
		for range rapid.IntRange(1, 8).Draw(t, "rounds") {
			for range rapid.IntRange(0, 6000).Draw(t, "events") {
				added++
				log.Add(events.Event{Kind: events.Records, Text: strconv.FormatUint(added, 10)})
			}
			list, last, lost := log.After(seen)
			if last != added || seen+lost+uint64(len(list)) != added || lost > 0 && len(list) != 4096 {
				t.Fatalf("after %d of %d: %d events, %d lost, the last is %d", seen, added, len(list), lost, last)
			}
			for i, e := range list {
				if want := seen + lost + uint64(i) + 1; e.Serial != want || e.Text != strconv.FormatUint(want, 10) || e.Time.IsZero() {
					t.Fatalf("event %d is %+v", want, e)
				}
			}
			seen = last
		}
	})
}

// Changes of records under churn drop no other event.
func TestChurnDropsNoOtherEvents(t *testing.T) {
	t.Parallel()
	log := events.New()
	log.Add(events.Event{Kind: events.Configuration, Text: "rejected"})
	for range 20_000 {
		log.Add(events.Event{Kind: events.Records})
	}
	if list, _, lost := log.After(0); len(list) != 4097 || lost != 20_000-4096 || list[0].Text != "rejected" {
		t.Errorf("%d events are kept and %d lost, the first is %+v", len(list), lost, list[0])
	}
}

func TestAReaderOfAnEarlierProcessBeginsAnew(t *testing.T) {
	t.Parallel()
	log := events.New()
	log.Add(events.Event{Text: "first"})
	if list, last, lost := log.After(99); len(list) != 1 || last != 1 || lost != 0 {
		t.Errorf("%v, %d, %d", list, last, lost)
	}
}

func TestAnEventIsBounded(t *testing.T) {
	t.Parallel()
	log := events.New()
	names := slices.Repeat([]string{strings.Repeat("é", 1<<10)}, 1000)
	log.Add(events.Event{Text: strings.Repeat("x", 1<<20), Names: names})
	list, _, _ := log.After(0)
	if len(list[0].Text) > 1100 || len(list[0].Names) != events.MostNames || len(list[0].Names[0]) > 300 || !utf8.ValidString(list[0].Names[0]) {
		t.Errorf("%d bytes and %d names are kept", len(list[0].Text), len(list[0].Names))
	}
}

func TestNoLogKeepsNothing(t *testing.T) {
	t.Parallel()
	var log *events.Log
	log.Add(events.Event{Text: "lost"})
	if list, last, lost := log.After(0); len(list) != 0 || last != 0 || lost != 0 {
		t.Errorf("%v, %d, %d", list, last, lost)
	}
}
