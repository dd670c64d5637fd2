package proxy

import (
	"context"
	"encoding/json"
	"slices"
)

// Listener is an active listener that came over ADS.
type Listener struct {
	// Version is that of its last update in full. Envoy keeps it when it takes other
	// chains in place, so Content alone says which version it has. It is empty for one
	// that is being drained.
	Version string
	Updated string          // when Envoy took it
	Content json.RawMessage // all of it, as JSON with its type
	// Ports are those that its chains are for, each once, and Chains the names of all.
	Ports  []uint32
	Chains []string
}

// Listeners are the active listeners that came over ADS, by name.
func (p *Proxy) Listeners(ctx context.Context) (map[string]Listener, error) {
	type chain struct {
		Name  string `json:"name"`
		Match struct {
			Port uint32 `json:"destination_port"`
		} `json:"filter_chain_match"`
	}
	found, err := dumped[struct {
		Name   string `json:"name"`
		Active struct {
			Version  string          `json:"version_info"`
			Updated  string          `json:"last_updated"`
			Listener json.RawMessage `json:"listener"`
		} `json:"active_state"`
	}](ctx, p, "dynamic_listeners")
	listeners := map[string]Listener{}
	for _, f := range found {
		l := Listener{Version: f.Active.Version, Updated: f.Active.Updated, Content: f.Active.Listener}
		var content struct {
			Chains []chain `json:"filter_chains"`
			Other  chain   `json:"default_filter_chain"`
		}
		if len(l.Content) > 0 {
			if err := json.Unmarshal(l.Content, &content); err != nil {
				return nil, err
			}
		}
		for _, c := range append(content.Chains, content.Other) {
			if c.Name != "" {
				l.Chains = append(l.Chains, c.Name)
			}
			if c.Match.Port != 0 {
				l.Ports = append(l.Ports, c.Match.Port)
			}
		}
		slices.Sort(l.Ports)
		l.Ports = slices.Compact(l.Ports)
		listeners[f.Name] = l
	}
	return listeners, err
}
