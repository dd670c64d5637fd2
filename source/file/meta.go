package file

import (
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
	"github.com/isthmus-mesh/isthmus/model"
)

// defaultNamespace is where an object without a namespace is.
const defaultNamespace = "default"

// managedBy and ours mark objects that an Isthmus wrote: reading them back
// would make it its own source.
const (
	managedBy = "app.kubernetes.io/managed-by"
	ours      = "isthmus"
)

// meta is what Isthmus wants of an object's metadata.
type meta struct {
	namespace, name string
	known           bool // both are right, so that it is clear which object this is
	spec            model.Meta
}

func metadata() *trail { return &trail{name: "metadata", index: -1} }

// metaFields are those of Kubernetes; most are none of our business.
var metaFields = []string{
	"annotations", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generateName",
	"generation", "labels", "managedFields", "name", "namespace", "ownerReferences", "resourceVersion", "selfLink", "uid",
}

// forbidden are annotations that only Istio itself, or another kind, may have.
var forbidden = [...]string{
	"internal.istio.io/parent-namespace", "internal.istio.io/parents", "internal.istio.io/webhook-always-reject", "istio.io/dry-run",
}

// maxAnnotations is how many bytes the annotations of an object may have.
const maxAnnotations = 256 << 10

// readMeta reads the metadata.
func readMeta(root *yamlpos.Node, v *verdict) meta {
	node, at := root.Get("metadata"), metadata()
	m := meta{namespace: defaultNamespace, known: true}
	if node.Kind() != yamlpos.Map && node.Kind() != yamlpos.Null {
		v.add(*at, "must be a map, is %s", node.Kind())
		m.known = false
		return m
	}
	for key := range node.Fields() {
		if !slices.Contains(metaFields, key.Name) {
			v.add(at.field(key.Name), "unknown field: %s", hint(key.Name, metaFields))
		}
	}
	m.readName(node, v)
	m.readNamespace(node, v)
	m.spec.Labels = model.MapOf(readStrings(node.Get("labels"), at.field("labels"), v))
	for key, value := range m.spec.Labels.All() {
		checkLabel(at.field("labels"), key, value, v)
	}
	m.spec.Annotations = model.MapOf(readStrings(node.Get("annotations"), at.field("annotations"), v))
	checkAnnotations(m.spec.Annotations, at.field("annotations"), v)
	m.spec.Created = readTime(node.Get("creationTimestamp"), at.field("creationTimestamp"), v)
	return m
}

func (m *meta) readName(node *yamlpos.Node, v *verdict) {
	at := metadata().field("name")
	name := node.Get("name")
	m.name = name.Text()
	switch {
	case !present(name) || m.name == "" && name.Kind() == yamlpos.String:
		v.add(at, "missing: every object needs a name")
	case name.Kind() != yamlpos.String:
		v.add(at, "must be a string, is %s: quote it", name.Kind())
	case !isObjectName(m.name):
		v.add(at, "%q cannot be an object's name: use lower-case letters, digits, '-' and '.', "+
			"beginning and ending with a letter or digit, at most 253", m.name)
	default:
		return
	}
	m.known = false
}

func (m *meta) readNamespace(node *yamlpos.Node, v *verdict) {
	at := metadata().field("namespace")
	namespace := node.Get("namespace")
	switch {
	case !present(namespace) || namespace.Kind() == yamlpos.String && namespace.Text() == "":
		return
	case namespace.Kind() != yamlpos.String:
		v.add(at, "must be a string, is %s: quote it", namespace.Kind())
	case !isNamespace(namespace.Text()):
		v.add(at, "%q cannot be a namespace: use lower-case letters, digits and '-', "+
			"beginning and ending with a letter or digit, at most 63", namespace.Text())
	default:
		m.namespace = namespace.Text()
		return
	}
	m.known = false
}

// present reports whether a field is given; null means that it is not.
func present(n *yamlpos.Node) bool { return n.Kind() != yamlpos.Null }

func readStrings(node *yamlpos.Node, at trail, v *verdict) map[string]string {
	if !present(node) {
		return nil
	}
	if node.Kind() != yamlpos.Map {
		v.add(at, "must be a map of strings, is %s", node.Kind())
		return nil
	}
	out := make(map[string]string, node.Len())
	for key, value := range node.Fields() {
		if !present(value) {
			out[key.Name] = "" // as Kubernetes takes it
			continue
		}
		if value.Kind() != yamlpos.String {
			v.add(at.field(key.Name), "must be a string, is %s: quote it", value.Kind())
			continue
		}
		out[key.Name] = value.Text()
	}
	return out
}

func readTime(node *yamlpos.Node, at trail, v *verdict) time.Time {
	if !present(node) {
		return time.Time{}
	}
	created, err := time.Parse(time.RFC3339, node.Text())
	if node.Kind() != yamlpos.String || err != nil {
		v.add(at, "%q is not a time: write it as 2006-01-02T15:04:05Z, or leave it out", node.Text())
		return time.Time{}
	}
	return created.UTC()
}

func checkAnnotations(annotations model.Labels, at trail, v *verdict) {
	size := 0
	for key, value := range annotations.All() {
		size += len(key) + len(value)
		if err := checkLabelKey(strings.ToLower(key)); err != nil {
			v.add(at.field(key), "%v", err)
		}
		if slices.Contains(forbidden[:], key) {
			v.add(at.field(key), "this annotation is not for objects of this kind: remove it")
		}
	}
	if size > maxAnnotations {
		v.add(at, "%d bytes, and at most %d are allowed: shorten or remove some", size, maxAnnotations)
	}
}

func checkLabel(at trail, key, value string, v *verdict) {
	if err := checkLabelKey(key); err != nil {
		v.add(at.field(key), "%v", err)
	}
	if err := checkLabelValue(value); err != nil {
		v.add(at.field(key), "%v", err)
	}
}
