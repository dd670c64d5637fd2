package istio

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/model"
)

// AnnotationPath is the annotation with the paths of a resource that an Isthmus serves; see
// [Paths].
const AnnotationPath = "isthmus.io/path"

// Paths are the paths of the items of an object. Ports, Endpoints and NotReady are in the
// order of the object, and empty for an object other than a ServiceEntry.
type Paths struct {
	Object    model.Path
	Ports     []model.Path
	Endpoints []model.Path
	NotReady  []model.Path // the endpoints in the annotation of a synthetic ServiceEntry
}

func (p Paths) items() []model.Path {
	return slices.Concat([]model.Path{p.Object}, p.Ports, p.Endpoints, p.NotReady)
}

// Text returns the annotation for an object that an Isthmus of that name passes on. If
// every item has the same path, the text is that path. Otherwise it is the paths, separated
// by semicolons, a slash, and the index of each item's path from 0. The items are the
// object, its ports, its endpoints, and those not ready. "0x3" means three items.
func (p Paths) Text(self string) string {
	items := p.items()
	var paths []string
	at := map[model.Path]int{}
	var runs []string
	for i := 0; i < len(items); {
		n := 1
		for i+n < len(items) && items[i+n] == items[i] {
			n++
		}
		which, known := at[items[i]]
		if !known {
			which = len(paths)
			at[items[i]] = which
			text := items[i]
			if self != "" {
				text = text.Via(self)
			}
			paths = append(paths, string(text))
		}
		run := strconv.Itoa(which)
		if n > 1 {
			run += "x" + strconv.Itoa(n)
		}
		runs = append(runs, run)
		i += n
	}
	if len(paths) == 1 {
		return paths[0]
	}
	return strings.Join(paths, ";") + "/" + strings.Join(runs, ",")
}

// parsePaths parses the result of [Paths.Text] for an object with so many items.
func parsePaths(text string, ports, endpoints, notReady int) (Paths, error) {
	count := 1 + ports + endpoints + notReady
	list, runs, several := strings.Cut(text, "/")
	var paths []model.Path
	for one := range strings.SplitSeq(list, ";") {
		path, err := model.ParsePath(one)
		switch {
		case err != nil:
			return Paths{}, err
		case path == "" && text != "":
			return Paths{}, errors.New("a path in it is empty")
		}
		paths = append(paths, path)
	}
	items := make([]model.Path, 0, count)
	if !several {
		runs = "0x" + strconv.Itoa(count)
	}
	for run := range strings.SplitSeq(runs, ",") {
		which, times, repeated := strings.Cut(run, "x")
		i, err := strconv.ParseUint(which, 10, 31)
		n := uint64(1)
		if repeated && err == nil {
			n, err = strconv.ParseUint(times, 10, 31)
		}
		if err != nil || i >= uint64(len(paths)) || n > uint64(count-len(items)) {
			return Paths{}, fmt.Errorf("%q says no paths of the %d items that the object has", cutText(run), count)
		}
		items = append(items, slices.Repeat(paths[i:i+1], int(n))...) //nolint:gosec // at most count
	}
	if len(items) != count {
		return Paths{}, fmt.Errorf("it says the paths of %d items, and the object has %d", len(items), count)
	}
	rest := items[1+ports:]
	return Paths{items[0], items[1 : 1+ports], rest[:endpoints:endpoints], rest[endpoints:]}, nil
}

func cutText(s string) string { return s[:min(len(s), 40)] }

// pathsOf reads the paths of a resource from its annotations.
func pathsOf(annotations map[string]string, entry *networking.ServiceEntry) (Paths, *Problem) {
	notReady := 0
	if text := annotations[notReadyEndpoints]; text != "" {
		notReady = 1 + strings.Count(text, ",")
	}
	all, err := parsePaths(annotations[AnnotationPath], len(entry.GetPorts()), len(entry.GetEndpoints()), notReady)
	if err != nil {
		return Paths{}, &Problem{Field: "metadata.annotations[" + AnnotationPath + "]", Reason: err.Error() + ": pass it on as an Isthmus wrote it, or remove it"}
	}
	return all, nil
}

// pathsLeft returns the paths of the remaining items, in their order.
func pathsLeft[T comparable](paths []model.Path, had, left []T) []model.Path {
	kept := make([]model.Path, 0, len(left))
	for i, item := range had {
		if len(kept) < len(left) && item == left[len(kept)] {
			kept = append(kept, paths[i])
		}
	}
	return kept
}

// takePaths stores the paths of a valid ServiceEntry. Endpoints that are not ready are not
// included.
func (r *Reading) takePaths(all Paths, entry *networking.ServiceEntry) {
	r.Path = all.Object
	for i := range min(len(r.Owned), len(all.Endpoints)) {
		r.Owned[i].Path = all.Endpoints[i]
	}
	for i, port := range entry.GetPorts() {
		if all.Ports[i] == all.Object {
			continue
		}
		if r.PortPaths == nil {
			r.PortPaths = map[uint32]model.Path{}
		}
		r.PortPaths[port.GetNumber()] = all.Ports[i]
	}
}

// WithoutEchoes removes the items of a valid object that came through the named Isthmus,
// which reads it. It returns the number of removed items: the object, ports and endpoints.
// If no item is left, the object is Echoed afterwards, and not valid.
func (r *Reading) WithoutEchoes(self string) (leftOut int) {
	if !r.Valid() {
		return 0
	}
	service, isService := r.Spec.(model.Service)
	if !isService {
		if !r.Path.Has(self) {
			return 0
		}
		r.echo()
		return 1
	}
	endpoints := slices.DeleteFunc(slices.Clone(r.Owned), func(o Owned) bool { return o.Path.Has(self) })
	leftOut = len(r.Owned) - len(endpoints)
	var ports []model.Port
	for port := range service.Ports.All() {
		path, taken := r.portPath(port, endpoints, self)
		if !taken {
			leftOut++
			continue
		}
		port.Path = path
		ports = append(ports, port)
	}
	path := r.Path
	if path.Has(self) {
		leftOut++
		path = shortest(ports, endpoints)
	}
	// Without its endpoints, a DNS host would be looked up itself.
	lookedUp := len(endpoints) == 0 && len(r.Owned) > 0 && IsDNS(service.Resolution)
	if lookedUp || len(ports) == 0 && (service.Ports.Len() > 0 || r.Path.Has(self)) {
		r.echo()
		return leftOut
	}
	for i := range ports {
		if ports[i].Path == path {
			ports[i].Path = ""
		}
	}
	service.Ports = model.ListOf(ports...)
	r.Spec, r.Owned, r.Path = service, endpoints, path
	return leftOut
}

// echo marks the reading as an object that is left out as a whole.
func (r *Reading) echo() { r.Spec, r.Owned, r.Echoed = nil, nil, true }

// portPath returns the path by which a port is taken: its own, or the path of an endpoint
// that serves it.
func (r *Reading) portPath(p model.Port, endpoints []Owned, self string) (path model.Path, taken bool) {
	path, other := r.PortPaths[p.Number]
	if !other {
		path = r.Path
	}
	if !path.Has(self) {
		return path, true
	}
	for _, o := range endpoints {
		e, _ := o.Spec.(model.Endpoint)
		if _, named := e.Ports.Get(p.Name); (named || !e.Exact) && (!taken || o.Path.Compare(path) < 0) {
			path, taken = o.Path, true
		}
	}
	return path, taken
}

// shortest returns the shortest path of an object's ports and endpoints; empty if there are
// none.
func shortest(ports []model.Port, endpoints []Owned) (path model.Path) {
	paths := make([]model.Path, 0, len(ports)+len(endpoints))
	for _, p := range ports {
		paths = append(paths, p.Path)
	}
	for _, o := range endpoints {
		paths = append(paths, o.Path)
	}
	if len(paths) > 0 {
		path = slices.MinFunc(paths, model.Path.Compare)
	}
	return path
}
