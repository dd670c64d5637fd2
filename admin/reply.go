package admin

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/plain"
)

// say writes one line of text; its arguments may be foreign text.
func say(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, plain.Text(fmt.Sprintf(format, args...)))
}

// fail answers with a status and an error text.
func fail(w http.ResponseWriter, status int, format string, args ...any) {
	http.Error(w, plain.Text(fmt.Sprintf(format, args...)), status)
}

// reply writes a value as JSON.
func reply(w http.ResponseWriter, log *slog.Logger, v any) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(plain.JSONWriter(w))
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		log.Debug("an admin client went away", "err", err)
	}
}

// replyList writes a list as JSON, element by element: only the part that is being sent is
// in memory.
func replyList[T any](w http.ResponseWriter, log *slog.Logger, list iter.Seq[T]) {
	w.Header().Set("Content-Type", "application/json")
	out := bufio.NewWriterSize(w, chunk)
	before := "[\n  "
	for element := range list {
		text, err := json.MarshalIndent(element, "  ", "  ")
		if err == nil {
			_, _ = out.WriteString(before)
			_, err = out.Write(plain.JSON(text))
		}
		if err != nil {
			log.Debug("an admin client went away", "err", err)
			panic(http.ErrAbortHandler) // otherwise the client would mistake a part for the whole
		}
		before = ",\n  "
	}
	end := "\n]\n"
	if before[0] == '[' {
		end = "[]\n"
	}
	_, _ = out.WriteString(end)
	_ = out.Flush() // the server detects that the client is gone
}

// age returns the time since then, to the second; to the millisecond below one.
func age(now, then time.Time) string {
	if then.IsZero() {
		return ""
	}
	d := max(now.Sub(then), 0)
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
