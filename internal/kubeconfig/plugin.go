package kubeconfig

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// longestPlugin is the default time limit of a plugin.
const longestPlugin = 30 * time.Second

// Plugin bounds how long requests wait for the credential plugin of a kubeconfig
// (users[].user.exec). client-go waits for a plugin without end, and ignores the context of
// the request meanwhile. A plugin cannot be stopped from here. A request that gives up
// therefore leaves a goroutine behind until the plugin ends. Until then further requests
// wait without a goroutine, so there are never many.
//
// The zero Plugin is ready, and may be used for successive transports. Its methods may be
// called from any goroutine.
type Plugin struct {
	// Within is the time limit of the plugin; zero means 30 s.
	Within time.Duration

	mu  sync.Mutex
	run *pluginRun // of the newest transport
}

// Transport returns the transport of requests to an API server.
func (p *Plugin) Transport(target *rest.Config) (http.RoundTripper, error) {
	if target.ExecProvider == nil {
		return rest.TransportFor(target)
	}
	inner := rest.CopyConfig(target)
	inner.Wrap(func(next http.RoundTripper) http.RoundTripper { return behindPlugin{next} })
	through, err := rest.TransportFor(inner)
	if err != nil {
		return nil, err
	}
	return &bounded{through, p.runOf(target.ExecProvider)}, nil
}

// runOf keeps the state of a plugin as long as its configuration is the same. client-go
// runs a plugin anew when its configuration changes.
func (p *Plugin) runOf(config *clientcmdapi.ExecConfig) *pluginRun {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil || !reflect.DeepEqual(p.run.config, config) {
		p.run = &pluginRun{config: config.DeepCopy(), within: cmp.Or(p.Within, longestPlugin)}
	}
	return p.run
}

// pluginRun is a plugin with the configuration of one kubeconfig.
type pluginRun struct {
	config *clientcmdapi.ExecConfig
	within time.Duration

	mu   sync.Mutex
	left int           // abandoned requests that still wait
	idle chan struct{} // closed once there are none; nil if there are none
}

// leave makes later requests wait until an abandoned attempt ends.
func (p *pluginRun) leave(a *attempt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left++; p.idle == nil {
		p.idle = make(chan struct{})
	}
	go func() {
		a.end()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.left--; p.left == 0 {
			close(p.idle)
			p.idle = nil
		}
	}()
}

// wait returns a channel that is closed once no abandoned request waits; busy is false if
// none does.
func (p *pluginRun) wait() (idle <-chan struct{}, busy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.idle, p.idle != nil
}

// silent returns the error of requests that the plugin keeps waiting.
func (p *pluginRun) silent() error {
	return fmt.Errorf("the credential plugin %[1]q of the kubeconfig has not answered within %[2]s; end its process, and see that %[1]q answers when run by hand, without a terminal",
		p.config.Command, p.within)
}

// bounded is the transport in front of a plugin.
type bounded struct {
	next   http.RoundTripper
	plugin *pluginRun
}

// attempt is a request on its way through the plugin.
type attempt struct {
	passed atomic.Bool // by the plugin
	done   chan answer
}

type attemptKey struct{}

type answer struct {
	response *http.Response
	err      error
}

// end waits for the answer of an abandoned request, and drops it.
func (a *attempt) end() {
	if got := <-a.done; got.err == nil {
		_ = got.response.Body.Close()
	}
}

// RoundTrip implements [http.RoundTripper]. It waits for
//
//   - abandoned requests, before it begins,
//   - the answer, or the error,
//   - the time limit of the plugin,
//   - the end of the request's context.
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	late := time.NewTimer(b.plugin.within)
	defer late.Stop()
	if idle, busy := b.plugin.wait(); busy {
		select {
		case <-idle:
		case <-late.C:
			return nil, b.plugin.silent()
		case <-r.Context().Done():
			return nil, context.Cause(r.Context())
		}
	}
	a := &attempt{done: make(chan answer, 1)}
	go func() {
		response, err := b.next.RoundTrip(r.WithContext(context.WithValue(r.Context(), attemptKey{}, a))) //nolint:bodyclose // whoever receives it closes it
		a.done <- answer{response, err}
	}()
	for {
		select {
		case got := <-a.done:
			return got.response, got.err
		case <-late.C:
			if a.passed.Load() {
				continue // the API server takes its time, and the context bounds that
			}
			b.plugin.leave(a)
			return nil, b.plugin.silent()
		case <-r.Context().Done():
			if !a.passed.Load() {
				b.plugin.leave(a)
				return nil, fmt.Errorf("%w, while the credential plugin %q of the kubeconfig runs", context.Cause(r.Context()), b.plugin.config.Command)
			}
			go a.end() // soon: the transport ends with the context
			return nil, context.Cause(r.Context())
		}
	}
}

// behindPlugin marks requests that passed the plugin.
type behindPlugin struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper]. A request that is not authorized goes back to
// the plugin, which may have newer credentials.
func (b behindPlugin) RoundTrip(r *http.Request) (*http.Response, error) {
	a, is := r.Context().Value(attemptKey{}).(*attempt)
	if !is {
		return b.next.RoundTrip(r)
	}
	a.passed.Store(true)
	response, err := b.next.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusUnauthorized {
		a.passed.Store(false)
	}
	return response, err
}
