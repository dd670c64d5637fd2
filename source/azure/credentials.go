package azure

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// Credentials identify Isthmus to Azure: exactly one of these.
type Credentials struct {
	WorkloadIdentity *WorkloadIdentity `json:"workloadIdentity"`
	ManagedIdentity  *ManagedIdentity  `json:"managedIdentity"`
	ClientSecret     *ClientSecret     `json:"clientSecret"`
}

// WorkloadIdentity is a service account of Kubernetes that is an identity of Azure,
// too. Empty fields come from the environment, as Azure's webhook sets it.
type WorkloadIdentity struct {
	TenantID  string `json:"tenantId"`
	ClientID  string `json:"clientId"`
	TokenFile string `json:"tokenFile"`
}

// ManagedIdentity is the identity of the machine that Isthmus runs on.
type ManagedIdentity struct {
	// ClientID names a user-assigned identity; empty for the system's.
	ClientID string `json:"clientId"`
}

// ClientSecret is an application with a secret in a file, which may change.
type ClientSecret struct {
	TenantID   string `json:"tenantId"`
	ClientID   string `json:"clientId"`
	SecretFile string `json:"secretFile"`
}

// open returns the credential that gets tokens.
func (c *Credentials) open(options policy.ClientOptions, log *slog.Logger) (azcore.TokenCredential, error) {
	switch {
	case c.WorkloadIdentity != nil:
		w := c.WorkloadIdentity
		return azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{
			ClientOptions: options, TenantID: w.TenantID, ClientID: w.ClientID, TokenFilePath: w.TokenFile,
		})
	case c.ManagedIdentity != nil:
		o := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: options}
		if id := c.ManagedIdentity.ClientID; id != "" {
			o.ID = azidentity.ClientID(id)
		}
		return azidentity.NewManagedIdentityCredential(o)
	case c.ClientSecret != nil:
		return &secret{ClientSecret: *c.ClientSecret, options: options, log: log}, nil
	}
	return nil, errors.New("credentials: missing")
}

// secret gets tokens for a secret in a file. The file is read whenever a token is
// needed, for the SDK takes the secret only once.
type secret struct {
	ClientSecret
	options policy.ClientOptions
	log     *slog.Logger

	mu         sync.Mutex
	known      string
	credential azcore.TokenCredential // for the known secret; nil before the first
	warned     string
}

// GetToken implements [azcore.TokenCredential].
func (s *secret) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	credential, err := s.current()
	if err != nil {
		return azcore.AccessToken{}, err
	}
	return credential.GetToken(ctx, o)
}

// current returns the credential for the file's present secret. If the file cannot be
// read, the previous credential stays in use.
func (s *secret) current() (azcore.TokenCredential, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := readSecret(s.SecretFile)
	if err != nil {
		if s.credential == nil {
			return nil, err
		}
		s.warn(err)
		return s.credential, nil
	}
	if s.warned = ""; text == s.known {
		return s.credential, nil
	}
	credential, err := azidentity.NewClientSecretCredential(s.TenantID, s.ClientID, text,
		&azidentity.ClientSecretCredentialOptions{ClientOptions: s.options})
	if err != nil {
		return nil, fmt.Errorf("credentials.clientSecret: %w", err)
	}
	s.known, s.credential = text, credential
	return credential, nil
}

// warn logs once that the previous secret is still in use.
func (s *secret) warn(err error) {
	if s.warned != err.Error() {
		s.warned = err.Error()
		s.log.Warn("the client secret cannot be read again; the previous one stays in use", "err", err)
	}
}

func readSecret(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("credentials.clientSecret.secretFile: %w", err)
	}
	text := strings.TrimSpace(string(content))
	if text == "" {
		return "", fmt.Errorf("credentials.clientSecret.secretFile: %s is empty; write the secret into it", file)
	}
	return text, nil
}
