// Package kubeconfig finds the API server that a configuration names, as kubectl does, and
// reads and creates the Lease that marks a cluster. Only a [Lease] opens a connection.
package kubeconfig

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Load returns the client configuration of a kubeconfig and a context, with the name of a
// program. Without either it is of the cluster that the process runs in, or otherwise
// kubectl's default.
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
		if clientcmd.IsEmptyConfig(err) {
			err = errors.New("there is none, and this process is not in a cluster")
		}
		return nil, fmt.Errorf("%s: %w; name a kubeconfig that can be used, or leave it out inside a cluster", field, err)
	}
	target.UserAgent = userAgent
	return target, nil
}

// Server returns the address of an API server in one spelling, to compare two
// configurations. An API server with several addresses counts as several.
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
