package supervise

import (
	"regexp"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/reading"
)

// mostSaid bounds the rejected objects that are remembered as logged.
const mostSaid = 1000

// repeats are the rejected objects that were logged recently. So a file does not fill
// the log if it is saved again and again with one mistake, or read half-written. The
// status lists all present rejections.
type repeats struct {
	at     map[model.Rejection]time.Time
	silent int // not logged since the last logged one
}

// lineNumbers matches line numbers within a reason, which move as the one in Where does.
var lineNumbers = regexp.MustCompile(`(:|\bline )\d+`)

// unsaid returns the rejections that were not logged within a minute, and the number
// suppressed since the last logged one.
func (s *repeats) unsaid(fresh []model.Rejection, now time.Time) (logged []model.Rejection, silent int) {
	for f, at := range s.at {
		if now.Sub(at) >= sayAgain {
			delete(s.at, f)
		}
	}
	for _, f := range fresh {
		key := reading.WithoutWhere(f)
		key.Reason = lineNumbers.ReplaceAllString(key.Reason, "$1")
		if _, lately := s.at[key]; lately {
			s.silent++
			continue
		}
		if s.at == nil {
			s.at = map[model.Rejection]time.Time{}
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
