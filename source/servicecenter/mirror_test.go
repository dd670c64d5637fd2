package servicecenter_test

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/source"
)

// What is registered is mirrored, what changes is followed, what is removed goes.
func TestMirrorFollows(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		cart := r.service("production", "cart", "1.0.0")
		r.instance(cart, "c1", "10.0.0.1:8080")
		m := r.mirror(r.config())
		m.is(source.StateLive, "")
		m.wants("cart at default/production/shop/cart: http-8080", "cart/c1 = 10.0.0.1")

		r.instance(cart, "c2", "10.0.0.2:8080")
		users := r.service("", "users", "1.0.0")
		r.instance(users, "u1", "10.0.1.1:9090")
		r.SetStatus(cart, "c1", "DOWN")
		r.rounds(1)
		m.wants("cart at default/production/shop/cart: http-8080", "cart/c1 = 10.0.0.1 UNHEALTHY", "cart/c2 = 10.0.0.2",
			"users at default//shop/users: http-9090", "users/u1 = 10.0.1.1")

		r.UnregisterInstance(cart, "c1")
		r.Unregister(users)
		r.rounds(3)
		m.wants("cart at default/production/shop/cart: http-8080", "cart/c2 = 10.0.0.2")
		m.is(source.StateLive, "")
	})
}
