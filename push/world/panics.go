package world

import (
	"cmp"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// The place of a panic, which determines its cost.
const (
	// PanicResource is in the world, as it found or encoded one resource. Subscribers that
	// hold a version of the resource keep it. Others are answered as if the resource did not
	// exist, unless its last good version is still known.
	PanicResource = "resource"
	// PanicStream is in the work for one subscriber, which is ended.
	PanicStream = "stream"
	// PanicStep is in a step for all subscribers. They are all ended, so that each reconnects
	// and is compared with the whole of the new world.
	PanicStep = "step"
)

// Panic describes the panics of one place.
type Panic struct {
	Where string
	Count uint64
	Last  time.Time
	Text  string // message of the last panic
}

// Panics counts panics, and logs each text once.
type Panics struct {
	log *slog.Logger

	mu     sync.Mutex
	places map[string]*Panic
	logged map[string]struct{}
}

// mostLogged bounds the texts that are logged and remembered.
const mostLogged = 100

// NewPanics returns an empty count; a nil log discards the texts.
func NewPanics(log *slog.Logger) *Panics {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Panics{log: log, places: map[string]*Panic{}, logged: map[string]struct{}{}}
}

// note counts and logs a panic. It is called before the stack unwinds.
func (p *Panics) note(where, about string, value any) {
	text := fmt.Sprintf("%s: %v", about, value)
	if p.count(where, text) {
		p.log.Error("a panic was survived; please report it", "where", where, "err", text, "stack", string(debug.Stack()))
	}
}

// count counts a panic and reports whether it is to be logged.
func (p *Panics) count(where, text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.places[where] == nil {
		p.places[where] = &Panic{Where: where}
	}
	at := p.places[where]
	at.Count, at.Last, at.Text = at.Count+1, time.Now(), text
	if _, known := p.logged[text]; known || len(p.logged) == mostLogged {
		return false
	}
	p.logged[text] = struct{}{}
	return true
}

// List returns the panics by place. It includes places without a panic.
func (p *Panics) List() []Panic {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []Panic
	for _, where := range []string{PanicResource, PanicStream, PanicStep} {
		if at := p.places[where]; at != nil {
			list = append(list, *at)
		} else {
			list = append(list, Panic{Where: where})
		}
	}
	slices.SortFunc(list, func(a, b Panic) int { return cmp.Compare(a.Where, b.Where) })
	return list
}

// Attempt runs a part of the work and reports whether it completed.
func (p *Panics) Attempt(where, about string, part func()) (ok bool) {
	defer func() {
		if value := recover(); value != nil {
			p.note(where, about, value)
			ok = false
		}
	}()
	part()
	return true
}
