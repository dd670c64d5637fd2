package kubernetes_test

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// accounts are the service accounts of namespace default, and the client that makes them.
type accounts struct {
	t      *testing.T
	config *rest.Config // of an administrator
	client *kubernetes.Clientset
}

func accountsOf(t *testing.T, c *cluster.Cluster) accounts {
	t.Helper()
	config, err := c.API.Config(cluster.Admin)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return accounts{t, config, client}
}

func (a accounts) create(name string) {
	a.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := a.client.CoreV1().ServiceAccounts("default").Create(a.t.Context(), account, metav1.CreateOptions{}); err != nil {
		a.t.Fatal(err)
	}
}

func (a accounts) remove(name string) {
	a.t.Helper()
	if err := a.client.CoreV1().ServiceAccounts("default").Delete(a.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		a.t.Fatal(err)
	}
}

// issue returns a token for audiences; without any, it is for the API server.
func (a accounts) issue(name string, audiences ...string) string {
	a.t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
	request, err := a.client.CoreV1().ServiceAccounts("default").CreateToken(a.t.Context(), name, request, metav1.CreateOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
	return request.Status.Token
}

// keys are the public keys of the tokens, a JSON Web Key Set.
func (a accounts) keys() []byte {
	a.t.Helper()
	keys, err := a.client.Discovery().RESTClient().Get().AbsPath("/openid/v1/jwks").DoRaw(a.t.Context())
	if err != nil {
		a.t.Fatal(err)
	}
	return keys
}
