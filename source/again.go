package source

import (
	"regexp"
	"time"
)

// mostSaid bounds the rejected objects that are remembered as logged.
const mostSaid = 1000

// repeats are which rejected objects the log has named lately. A file that is saved
// again and again with one mistake, and half of it read in between, does not fill
// the log; what is rejected now is in the status.
type repeats struct {
	at     map[Rejection]time.Time
	silent int // that were not logged since one was
}

// lineNumbers are those within a reason, which move as the one in Where does.
var lineNumbers = regexp.MustCompile(`(:|\bline )\d+`)

// unsaid returns those that were not logged within a minute, and how many were
// kept back since the last that was.
func (s *repeats) unsaid(fresh []Rejection, now time.Time) (logged []Rejection, silent int) {
	for f, at := range s.at {
		if now.Sub(at) >= sayAgain {
			delete(s.at, f)
		}
	}
	for _, f := range fresh {
		key := f.withoutWhere()
		key.Reason = lineNumbers.ReplaceAllString(key.Reason, "$1")
		if _, lately := s.at[key]; lately {
			s.silent++
			continue
		}
		if s.at == nil {
			s.at = map[Rejection]time.Time{}
		}
		if len(s.at) < mostSaid {
			s.at[key] = now
		}
		logged = append(logged, f)
	}
	if len(logged) == 0 {
		return nil, 0
	}
	silent, s.silent = s.silent, 0
	return logged, silent
}
