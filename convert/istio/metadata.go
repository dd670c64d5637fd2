package istio

import (
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/convert/istio/names"
	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
	"github.com/isthmus-mesh/isthmus/model"
)

// defaultNamespace is where an object without a namespace is.
const defaultNamespace = "default"

// The label that marks an object written by an Isthmus.
const (
	LabelManagedBy = "app.kubernetes.io/managed-by"
	ManagedBy      = "isthmus"
)

// meta is the part of an object's metadata that Isthmus uses.
type meta struct {
	namespace, name string
	known           bool // namespace and name are valid, so the identity of the object is known
	spec            model.Meta
}

func metadata() *trail { return &trail{nil, "metadata", -1} }

// metaFields are the metadata fields of Kubernetes; most of them are ignored.
var metaFields = []string{
	"annotations", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generateName",
	"generation", "labels", "managedFields", "name", "namespace", "ownerReferences", "resourceVersion", "selfLink", "uid",
}

// forbidden are annotations that only Istio itself may have.
var forbidden = [...]string{"internal.istio.io/parent-namespace", "internal.istio.io/parents", "internal.istio.io/webhook-always-reject"}

// dryRun is an annotation of some kinds that are not read.
const dryRun = "istio.io/dry-run"

// maxAnnotations bounds the bytes of an object's annotations.
const maxAnnotations = 256 << 10

// readMeta reads the metadata.
func readMeta(root *yamlpos.Node, p *problems) meta {
	node, at := root.Get("metadata"), metadata()
	m := meta{namespace: defaultNamespace, known: true}
	if node.Kind() != yamlpos.Map && node.Kind() != yamlpos.Null {
		p.add(*at, "must be a map, is %s", node.Kind())
		m.known = false
		return m
	}
	for key := range node.Fields() {
		if !slices.Contains(metaFields, key.Name) {
			p.add(at.field(key.Name), "unknown field: %s", hint{key.Name, metaFields})
		}
	}
	m.readName(node, p)
	m.readNamespace(node, p)
	m.spec.Labels = model.MapOf(readStrings(node.Get("labels"), at.field("labels"), p))
	for key, value := range m.spec.Labels.All() {
		checkLabel(at.field("labels"), key, value, p)
	}
	m.spec.Annotations = model.MapOf(readStrings(node.Get("annotations"), at.field("annotations"), p))
	checkAnnotations(m.spec.Annotations, at.field("annotations"), p)
	m.spec.Created = readTime(node.Get("creationTimestamp"), at.field("creationTimestamp"), p)
	return m
}

func (m *meta) readName(node *yamlpos.Node, p *problems) {
	at := metadata().field("name")
	name := node.Get("name")
	m.name = name.Text()
	switch {
	case !present(name) || m.name == "" && name.Kind() == yamlpos.String:
		p.add(at, "missing: every object needs a name")
	case name.Kind() != yamlpos.String:
		p.add(at, "must be a string, is %s: quote it", name.Kind())
	case p.carried && !isCarriedName(m.name):
		p.add(at, "%q cannot be an object's name: use at most 253 printable characters without a space", m.name)
	case !p.carried && !names.IsObjectName(m.name):
		p.add(at, "%q cannot be an object's name: use lower-case letters, digits, '-' and '.', "+
			"beginning and ending with a letter or digit, at most 253", m.name)
	default:
		return
	}
	m.known = false
}

func (m *meta) readNamespace(node *yamlpos.Node, p *problems) {
	at := metadata().field("namespace")
	namespace := node.Get("namespace")
	switch {
	case !present(namespace) || namespace.Kind() == yamlpos.String && namespace.Text() == "":
		return
	case namespace.Kind() != yamlpos.String:
		p.add(at, "must be a string, is %s: quote it", namespace.Kind())
	case !names.IsNamespace(namespace.Text()):
		p.add(at, "%q cannot be a namespace: use lower-case letters, digits and '-', "+
			"beginning and ending with a letter or digit, at most 63", namespace.Text())
	default:
		m.namespace = namespace.Text()
		return
	}
	m.known = false
}

// present reports whether a field is given; null means that it is not.
func present(n *yamlpos.Node) bool { return n.Kind() != yamlpos.Null }

func readStrings(node *yamlpos.Node, at trail, p *problems) map[string]string {
	if !present(node) {
		return nil
	}
	if node.Kind() != yamlpos.Map {
		p.add(at, "must be a map of strings, is %s", node.Kind())
		return nil
	}
	out := make(map[string]string, node.Len())
	for key, value := range node.Fields() {
		if !present(value) {
			out[key.Name] = "" // as Kubernetes reads null
			continue
		}
		if value.Kind() != yamlpos.String {
			p.add(at.field(key.Name), "must be a string, is %s: quote it", value.Kind())
			continue
		}
		out[key.Name] = value.Text()
	}
	return out
}

func readTime(node *yamlpos.Node, at trail, p *problems) time.Time {
	if !present(node) {
		return time.Time{}
	}
	created, err := time.Parse(time.RFC3339, node.Text())
	if node.Kind() != yamlpos.String || err != nil {
		p.add(at, "%q is not a time: write it as 2006-01-02T15:04:05Z, or leave it out", node.Text())
		return time.Time{}
	}
	return created.UTC()
}

func checkAnnotations(annotations model.Labels, at trail, p *problems) {
	size := 0
	for key, value := range annotations.All() {
		size += len(key) + len(value)
		if err := names.CheckLabelKey(strings.ToLower(key)); err != nil {
			p.add(at.field(key), "%v", err)
		}
	}
	if size > maxAnnotations {
		p.add(at, "%d bytes, and at most %d are allowed: shorten or remove some", size, maxAnnotations)
	}
}

func checkForbidden(annotations model.Labels, of Definition, p *problems) {
	at := metadata().field("annotations")
	for key := range annotations.All() {
		if slices.Contains(forbidden[:], key) || key == dryRun && of.IsRead() {
			p.add(at.field(key), "this annotation is not for objects of this kind: remove it")
		}
	}
}

func checkLabel(at trail, key, value string, p *problems) {
	if err := names.CheckLabelKey(key); err != nil {
		p.add(at.field(key), "%v", err)
	}
	if err := names.CheckLabelValue(value); err != nil {
		p.add(at.field(key), "%v", err)
	}
}
