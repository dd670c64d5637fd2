package registry

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
)

// request is a request to any member.
type request struct {
	what   string // for people: "list the services"
	method string
	path   []string // below /v4, not yet escaped
	query  string
	body   []byte
	// consumer is the service in the name of which to ask; the registry records that.
	consumer string
	// secret is a part of the body. The answer is secret, too, and errors quote it
	// only if it is the registry's own error.
	secret string
	// read takes the answer; after an error, another member is asked.
	read func(body []byte) error
}

// url returns the URL of the request at a member.
func (r request) url(address string) string {
	var b strings.Builder
	b.WriteString(address + "/v4")
	for _, part := range r.path {
		b.WriteString("/" + url.PathEscape(part))
	}
	if r.query != "" {
		b.WriteString("?" + r.query)
	}
	return b.String()
}

// header returns the header of the request.
func (r request) header(domain, token string) http.Header {
	h := http.Header{}
	h.Set("X-Domain-Name", domain)
	askCompressed(h)
	if r.body != nil {
		h.Set("Content-Type", "application/json")
	}
	if r.consumer != "" {
		h.Set("X-ConsumerId", r.consumer)
	}
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	return h
}

// quotable returns the part of an answer that errors may quote: some proxies repeat
// the request in their answer, with the token or the password in it.
func (r request) quotable(body []byte, token string) []byte {
	for _, secret := range []string{token, r.secret} {
		if secret != "" {
			body = bytes.ReplaceAll(body, []byte(secret), []byte("***"))
		}
	}
	var said registryError
	if r.secret != "" && (unmarshal(body, &said) != nil || said.Code == "") {
		return nil
	}
	return body
}
