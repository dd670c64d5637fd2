// Package kubeconfig finds the API server that a configuration names, as kubectl does.
// It speaks to nobody.
package kubeconfig

import (
	"fmt"
	"net"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Load returns how to reach the API server of a kubeconfig and a context, under the name
// of a program. Without either it is that of the cluster that the process runs in, or
// else what kubectl would take.
func Load(file, inContext, userAgent string) (*rest.Config, error) {
	if file == "" && inContext == "" {
		if inside, err := rest.InClusterConfig(); err == nil {
			inside.UserAgent = userAgent
			return inside, nil
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	target, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: inContext}).ClientConfig()
	if err != nil {
		field := "kubeconfig"
		if inContext != "" {
			field = "context"
		}
		return nil, fmt.Errorf("%s: %w; name a kubeconfig that can be used, or leave it out inside a cluster", field, err)
	}
	target.UserAgent = userAgent
	return target, nil
}

// Server is the address of an API server in one spelling, by which two configurations of
// the same one are known. An API server that has several addresses is several here.
func Server(target *rest.Config) (string, error) {
	url, _, err := rest.DefaultServerUrlFor(target)
	if err != nil {
		return "", fmt.Errorf("%q is no address of an API server: %w", target.Host, err)
	}
	port := url.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[url.Scheme]
	}
	return url.Scheme + "://" + net.JoinHostPort(strings.ToLower(url.Hostname()), port) + strings.TrimSuffix(url.Path, "/"), nil
}
