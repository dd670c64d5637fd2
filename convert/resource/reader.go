package resource

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	api "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/model"
)

// reader reads the parts of a message that may be wrong. It keeps the first error.
type reader struct{ err error }

func (r *reader) fail(field, format string, args ...any) {
	if r.err == nil {
		r.err = errors.New(field + ": " + fmt.Sprintf(format, args...))
	}
}

// ref reads a reference that has no source if its kind is merged.
func (r *reader) ref(field string, m *api.Ref) model.Ref {
	if m.GetSource() != "" && merged(model.Kind(m.GetKind())) {
		r.fail(field+".source", "is %q, but records of kind %s have no source; leave it empty", m.GetSource(), m.GetKind())
	}
	return RefOf(m)
}

func (r *reader) path(field string, names []string) model.Path {
	if len(names) == 0 {
		return ""
	}
	for _, name := range names {
		if !model.IsPathName(name) {
			r.fail(field, "has %q, which is no name of an Isthmus; use 1 to 63 letters, digits, dashes, underscores and dots", name)
			return ""
		}
	}
	if len(names) > model.MostPath {
		r.fail(field, "has %d names, and at most %d are allowed; look for Isthmuses that read from each other in a circle", len(names), model.MostPath)
		return ""
	}
	return model.Path(strings.Join(names, ","))
}

func (r *reader) meta(field string, m *api.Meta) model.Meta {
	out := model.Meta{Labels: model.MapOf(m.GetLabels()), Annotations: model.MapOf(m.GetAnnotations())}
	if m.GetCreated() != nil {
		out.Created = r.time(field+".created", m.GetCreated())
	}
	return out
}

func (r *reader) time(field string, m *timestamppb.Timestamp) time.Time {
	if m == nil {
		return time.Time{}
	}
	if err := m.CheckValid(); err != nil {
		r.fail(field, "is no time of the years 1 to 9999; leave it unset if it is unknown")
		return time.Time{}
	}
	return m.AsTime()
}

// duration reads a duration that Go can express.
func (r *reader) duration(field string, m *durationpb.Duration) time.Duration {
	if m == nil {
		return 0
	}
	d := m.AsDuration() // the nearest possible one
	if again := durationpb.New(d); m.CheckValid() != nil || again.Seconds != m.Seconds || again.Nanos != m.Nanos {
		r.fail(field, "is no duration of at most 292 years; send a shorter one")
	}
	return d
}
