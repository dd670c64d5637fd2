package names

import (
	"iter"
	"strings"
)

// ShortName takes apart a host as Kubernetes names them, NAME.NAMESPACE.svc.DOMAIN.
func ShortName(host, domain string) (name, namespace string, ok bool) {
	rest, own := strings.CutSuffix(host, ".svc."+domain)
	name, namespace, ok = strings.Cut(rest, ".")
	return name, namespace, own && ok && name != "" && namespace != "" && !strings.ContainsRune(namespace, '.')
}

// ShortNames yields the short names of a host: NAME.NAMESPACE, NAME.NAMESPACE.svc, and the bare
// NAME, by which its own namespace alone calls it.
func ShortNames(host, domain string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if name, namespace, ok := ShortName(host, domain); ok {
			_ = yield(name+"."+namespace) && yield(name+"."+namespace+".svc") && yield(name)
		}
	}
}

// LongName returns the host that has a short name in a namespace; ok is false if it is no short
// name there.
func LongName(short, namespace, domain string) (host string, ok bool) {
	switch name, rest, dotted := strings.Cut(short, "."); {
	case !dotted:
		host = name + "." + namespace + ".svc." + domain
	case !strings.ContainsRune(rest, '.'):
		host = short + ".svc." + domain
	default:
		host = short + "." + domain
	}
	_, _, ok = ShortName(host, domain)
	return host, ok
}
