package kubernetes_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// account is a service account that may read all, and its token in a file.
type account struct {
	accounts
	token string // file
}

// renew makes the account anew: the tokens that it had are worth nothing from then on.
func (a *account) renew() {
	a.t.Helper()
	a.create("reader")
	if err := os.WriteFile(a.token, []byte(a.issue("reader")), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// expire makes the token worth nothing.
func (a *account) expire() { a.remove("reader") }

func newAccount(t *testing.T, c *cluster.Cluster) *account {
	t.Helper()
	a := &account{accountsOf(t, c), filepath.Join(t.TempDir(), "token")}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "reader"}},
	}
	if _, err := a.client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	a.renew()
	return a
}

// kubeconfig is one of the account, which names the file of the token.
func (a *account) kubeconfig(c *cluster.Cluster) string {
	a.t.Helper()
	path := kubeconfig(a.t, c.API, cluster.Admin)
	a.write(path, &clientcmdapi.AuthInfo{TokenFile: a.token})
	return path
}

// within writes the token itself into a kubeconfig.
func (a *account) within(path string) {
	a.t.Helper()
	token, err := os.ReadFile(a.token)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(path, &clientcmdapi.AuthInfo{Token: string(token)})
}

// write has all users of a kubeconfig be one.
func (a *account) write(path string, user *clientcmdapi.AuthInfo) {
	a.t.Helper()
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		a.t.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = user
	}
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		a.t.Fatal(err)
	}
}

// A token that is worth nothing any more takes nothing away: the source says that it has
// to be renewed, and goes on when it is, be it in a file of its own or by another
// kubeconfig in the place of the one before.
func TestTokenExpires(t *testing.T) {
	t.Parallel()
	c := own(t)
	client, reader := connect(t, c), newAccount(t, c)
	if err := client.Namespace(t.Context(), "kept"); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects(t, steadyObjects, "kept") {
		if err := client.Apply(t.Context(), resources[o.GetKind()], o); err != nil {
			t.Fatal(err)
		}
	}
	replaced := kubeconfig(t, c.API, cluster.Admin)
	reader.within(replaced)
	readers := []*mirrored{mirror(t, reader.kubeconfig(c)), mirror(t, replaced)}
	before := make([]map[string]model.UID, len(readers))
	for i, m := range readers {
		m.awaitState(source.StateLive)
		before[i] = m.uids("kept")
	}
	reader.expire()
	c.API.Kill() // a watch that is open is not asked for its token again
	if err := c.API.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, m := range readers {
		await(t, "a reason", func() error {
			if s := m.supervisor.Status(); s.State != source.StateStale || !strings.Contains(s.Reason, "renew the credentials") {
				return fmt.Errorf("it is %s: %s", s.State, s.Reason)
			}
			return nil
		})
		m.mustHave(before[i], "kept")
	}
	reader.renew()
	reader.within(replaced)
	for i, m := range readers {
		m.awaitState(source.StateLive)
		m.mustHave(before[i], "kept")
	}
	if err := client.Delete(t.Context(), slicesOf, "kept", "steady-1"); err != nil {
		t.Fatal(err)
	}
	for _, m := range readers {
		await(t, "the endpoints to leave", func() error {
			if r := m.records("kept"); len(r) != 1 {
				return fmt.Errorf("there is %v", r)
			}
			return nil
		})
	}
}
