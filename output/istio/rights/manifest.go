package rights

import (
	"fmt"
	"slices"
	"strings"

	convert "github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/output"
)

// manifestFor returns a manifest for kubectl that grants a subject the missing rights. A
// role contains all rights of its scope, including existing and optional ones, because it may
// replace a role of the same name.
func (n Needs) manifestFor(subject string, missing []output.Right) string {
	lacks := func(cluster bool, group string) bool {
		return slices.ContainsFunc(missing, func(r output.Right) bool { return (r.Namespace == "") == cluster && r.Group == group })
	}
	var text strings.Builder
	if lacks(true, convert.Group) {
		verbs := readVerbs()
		if !lacks(false, convert.Group) {
			verbs = append(verbs, WriteVerbs()...)
		}
		writeRole(&text, "ClusterRole", "", subject, n.rule(verbs), eventsRule())
	}
	for _, namespace := range namespacesIn(missing) {
		var rules []string
		if slices.ContainsFunc(missing, func(r output.Right) bool { return r.Namespace == namespace && r.Group == convert.Group }) {
			rules = append(rules, n.rule(WriteVerbs()), eventsRule())
		}
		if slices.ContainsFunc(missing, func(r output.Right) bool { return r.Namespace == namespace && r.Group == leaseGroup }) {
			rules = append(rules, rule(leaseGroup, []string{"leases"}, leaseVerbs()))
		}
		writeRole(&text, "Role", namespace, subject, rules...)
	}
	return text.String()
}

func namespacesIn(rights []output.Right) (list []string) {
	for _, right := range rights {
		if right.Namespace != "" {
			list = append(list, right.Namespace)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// rule returns the rule for the written kinds.
func (n Needs) rule(verbs []string) string {
	var resources []string
	for _, kind := range n.Kinds {
		resources = append(resources, kind.Resource())
	}
	return rule(convert.Group, resources, verbs)
}

// eventsRule returns the rule for Events about objects that are not written. It is optional, so
// it never counts as missing.
func eventsRule() string { return rule(`""`, []string{"events"}, []string{"create", "patch"}) }

func rule(group string, resources, verbs []string) string {
	return fmt.Sprintf("- apiGroups: [%s]\n  resources: [%s]\n  verbs: [%s]\n", group, strings.Join(resources, ", "), strings.Join(verbs, ", "))
}

// writeRole writes a role and its binding.
func writeRole(to *strings.Builder, kind, namespace, subject string, rules ...string) {
	metadata := "{name: isthmus}"
	if namespace != "" {
		metadata = "{name: isthmus, namespace: " + namespace + "}"
	}
	const head = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: %s\nmetadata: %s\n"
	fmt.Fprintf(to, head+"rules:\n%s", kind, metadata, strings.Join(rules, ""))
	fmt.Fprintf(to, head+"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %s, name: isthmus}\nsubjects:\n- %s\n",
		kind+"Binding", metadata, kind, subjectOfBinding(subject))
}

// subjectOfBinding returns the subject of a binding for a user of the API server.
func subjectOfBinding(user string) string {
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		namespace, name, _ := strings.Cut(account, ":")
		return fmt.Sprintf("{kind: ServiceAccount, namespace: %s, name: %s}", namespace, name)
	}
	return fmt.Sprintf("{kind: User, apiGroup: rbac.authorization.k8s.io, name: %q}", user)
}
