package azure

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/isthmus-mesh/isthmus/internal/wait"
	"github.com/isthmus-mesh/isthmus/source/machines"
)

// explain turns an answer of Azure into a short error with advice.
func explain(err error) error {
	if login, is := errors.AsType[*azidentity.AuthenticationFailedError](err); is {
		return explainLogin(login)
	}
	answer, is := errors.AsType[*azcore.ResponseError](err)
	if !is {
		return err
	}
	short := fmt.Errorf("%s answers %d %s", requestOf(answer), answer.StatusCode, answer.ErrorCode)
	switch answer.StatusCode {
	case http.StatusTooManyRequests:
		return &machines.Throttled{After: retryAfter(answer.RawResponse), Err: short}
	case http.StatusServiceUnavailable:
		if after := retryAfter(answer.RawResponse); after > 0 {
			return &machines.Throttled{After: after, Err: short}
		}
	case http.StatusUnauthorized:
		return fmt.Errorf("%w; correct the credentials", short)
	case http.StatusForbidden:
		return fmt.Errorf("%w; give the identity the role Reader there, or correct the name", short)
	}
	return short
}

// explainLogin returns why there is no token, on one line. The SDK uses many lines.
func explainLogin(login *azidentity.AuthenticationFailedError) error {
	var said []string
	for line := range strings.Lines(login.Error()) {
		if line = strings.TrimSpace(line); strings.Trim(line, "-") != "" && !strings.HasPrefix(line, "To troubleshoot") {
			said = append(said, line)
		}
	}
	short := errors.New("credentials: " + strings.Join(said, " "))
	if login.RawResponse != nil && login.RawResponse.StatusCode == http.StatusTooManyRequests {
		return &machines.Throttled{After: retryAfter(login.RawResponse), Err: short}
	}
	return short
}

// denied is [explain] for a request of one resource by its name.
func denied(err error) error {
	var answer *azcore.ResponseError
	if errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound &&
		(answer.ErrorCode == "ResourceNotFound" || answer.ErrorCode == "ResourceGroupNotFound") {
		return fmt.Errorf("%w: %w", machines.ErrGone, explain(err))
	}
	return explain(err)
}

// requestOf names a request without its parameters.
func requestOf(e *azcore.ResponseError) string {
	if e.RawResponse == nil || e.RawResponse.Request == nil {
		return "Azure"
	}
	u := e.RawResponse.Request.URL
	return u.Host + u.Path
}

// retryAfter returns the wait that an answer asks for; zero if there is none.
func retryAfter(r *http.Response) time.Duration {
	if r == nil {
		return 0
	}
	return wait.RetryAfter(r.Header, time.Now())
}

// largest bounds the bytes of an answer. A page is far smaller.
const largest = 64 << 20

// bounded limits the size of answers.
type bounded struct{ next policy.Transporter }

// Do implements [policy.Transporter].
func (b bounded) Do(r *http.Request) (*http.Response, error) {
	answer, err := b.next.Do(r)
	if err == nil && answer.Body != nil {
		answer.Body = &body{answer.Body, largest}
	}
	return answer, err
}

type body struct {
	io.ReadCloser
	rest int64
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.rest -= int64(n); b.rest < 0 {
		return 0, fmt.Errorf("an answer is larger than %d MiB", largest>>20)
	}
	return n, err
}
