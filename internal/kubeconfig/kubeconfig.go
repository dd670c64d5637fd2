// Package kubeconfig finds the API server that a configuration names, as kubectl does, and
// identifies its cluster. Only [Identity] and a [Lease] open a connection.
package kubeconfig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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

// Identity asks an API server for the identity of its cluster. The answer is the same at
// all addresses: the UID of the namespace kube-system, which is created once in the life of
// a cluster. It is empty if the server denies access, or has no such namespace. Both may be
// temporary. A starting server denies everything until it has read its roles, and the first
// one of a cluster creates the namespace. An error means that there was no valid answer.
func Identity(ctx context.Context, target *rest.Config) (string, error) {
	url, _, err := rest.DefaultServerUrlFor(target)
	if err != nil {
		return "", fmt.Errorf("%q is no address of an API server: %w", target.Host, err)
	}
	through, err := new(Plugin).Transport(target)
	if err != nil {
		return "", fmt.Errorf("%s: %w", target.Host, err)
	}
	client := &http.Client{Transport: through, Timeout: target.Timeout}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url.JoinPath("api/v1/namespaces/kube-system").String(), http.NoBody)
	if err != nil {
		return "", err
	}
	r.Header.Set("Accept", "application/json")
	response, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	uid, err := uidOf(response)
	if err != nil {
		return "", fmt.Errorf("%s: %w", r.URL, err)
	}
	return uid, nil
}

// uidOf returns the UID of the namespace in an API server's answer. A missing namespace or
// denied access counts only if an API server reports it, and not a proxy in front of it.
func uidOf(response *http.Response) (string, error) {
	var object struct {
		Kind     string `json:"kind"`
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
	}
	err := json.NewDecoder(io.LimitReader(response.Body, largest)).Decode(&object)
	switch code := response.StatusCode; {
	case err == nil && code == http.StatusOK && object.Kind == "Namespace":
		return object.Metadata.UID, nil
	case err == nil && (code == http.StatusForbidden || code == http.StatusNotFound) && object.Kind == "Status":
		return "", nil
	case code == http.StatusOK:
		return "", errors.New("the answer is no namespace; correct the address of the API server")
	}
	return "", errors.New("the API server answers " + response.Status)
}
