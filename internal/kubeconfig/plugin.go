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

// longestPlugin is how long a plugin may take by default.
const longestPlugin = 30 * time.Second

// Plugin bounds how long requests wait for the credential plugin of a kubeconfig
// (users[].user.exec). client-go waits for a plugin without end, and ignores the context of
// the request meanwhile. A plugin cannot be stopped from here, so a request that gives up
// leaves a goroutine behind until the plugin ends. Until then further requests wait without
// one, so there are never many.
//
// The zero Plugin is ready, and may be used for one transport after the other. Its methods
// may be called from any goroutine.
type Plugin struct {
	// Within is how long the plugin may take; zero for 30 s.
	Within time.Duration

	mu  sync.Mutex
	run *pluginRun // of the newest transport
}

// Transport returns what requests to an API server go through.
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

// runOf keeps what is known of a plugin as long as the kubeconfig says the same of it.
// client-go runs one that is given otherwise anew.
func (p *Plugin) runOf(config *clientcmdapi.ExecConfig) *pluginRun {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil || !reflect.DeepEqual(p.run.config, config) {
		p.run = &pluginRun{config: config.DeepCopy(), within: cmp.Or(p.Within, longestPlugin)}
	}
	return p.run
}

// pluginRun is a plugin as one kubeconfig has it.
type pluginRun struct {
	config *clientcmdapi.ExecConfig
	within time.Duration

	mu   sync.Mutex
	left int           // requests that were given up and still wait
	idle chan struct{} // closed once there are none; nil if there are none
}

// leave has later requests wait until an attempt ends that was given up.
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

// wait is closed once no request waits that was given up; busy is false if none does.
func (p *pluginRun) wait() (idle <-chan struct{}, busy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.idle, p.idle != nil
}

// silent is the error of requests that the plugin keeps waiting.
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

// end waits for the answer, which nobody wants any more.
func (a *attempt) end() {
	if got := <-a.done; got.err == nil {
		_ = got.response.Body.Close()
	}
}

// RoundTrip implements [http.RoundTripper]. It waits for
//   - requests that were given up, before it begins,
//   - the answer, or the error,
//   - the time at which the plugin has taken too long,
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
				continue // it is the API server that takes its time, and the context says how long it may
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

// behindPlugin marks requests that the plugin let pass.
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
