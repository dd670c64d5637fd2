package resource

import (
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"

	api "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/model"
)

// text returns a text that a message may contain: a single byte that is not UTF-8, in the path
// of a file for example, would keep a whole stream from being encoded.
func text[S ~string](s S) string {
	if utf8.ValidString(string(s)) {
		return string(s)
	}
	return strings.ToValidUTF8(string(s), "\uFFFD")
}

func texts(l model.List[string]) []string {
	if l.Len() == 0 {
		return nil
	}
	out := make([]string, l.Len())
	for i := range out {
		out[i] = text(l.At(i))
	}
	return out
}

func labels(l model.Labels) map[string]string {
	if l.Len() == 0 {
		return nil
	}
	out := make(map[string]string, l.Len())
	for name, value := range l.All() {
		out[text(name)] = text(value)
	}
	return out
}

// list returns a message of each item.
func list[T comparable, M any](items model.List[T], message func(T) M) []M {
	if items.Len() == 0 {
		return nil
	}
	out := make([]M, items.Len())
	for i := range out {
		out[i] = message(items.At(i))
	}
	return out
}

// timestamp returns a time, or nil for no time.
func timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func names(p model.Path) []string {
	if p == "" {
		return nil
	}
	out := make([]string, 0, p.Len())
	for name := range p.Names() {
		out = append(out, text(name))
	}
	return out
}

// meta returns metadata, or nil for none.
func meta(m *model.Meta) *api.Meta {
	if m.SameMeta(model.Meta{}) {
		return nil
	}
	return &api.Meta{Labels: labels(m.Labels), Annotations: labels(m.Annotations), Created: timestamp(m.Created)}
}

func opaque(q *model.Opaque) *api.Opaque {
	return &api.Opaque{Meta: meta(&q.Meta), Type: text(q.Type), Content: []byte(q.Content)}
}

func opaqueOf(r *reader, m *api.Opaque) model.Opaque {
	return model.Opaque{Meta: r.meta("opaque.meta", m.GetMeta()), Type: m.GetType(), Content: string(m.GetContent())}
}
