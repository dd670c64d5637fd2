package write

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/isthmus-mesh/isthmus/output/istio/object"
)

// complete removes other owners' fields from the specification, which server-side apply
// leaves there. u is the object after the apply.
func (r *Remote) complete(ctx context.Context, o object.Object, u *unstructured.Unstructured) (object.Observed, error) {
	if now := object.Observe(o.Kind, u); o.Differs(now) != "spec" {
		return now, nil
	}
	return r.replace(ctx, o, u)
}

// takeOver writes an object over its observed version if it cannot be applied. Apply keeps
// the fields of other owners, and both together may be invalid, or select no endpoint:
// selectors are united label by label. Therefore the ownership of the specification is
// claimed first, which changes nothing else. The specification is replaced, whoever owns
// it, if that does not help. So it is if there is nothing to claim after a rejection.
func (r *Remote) takeOver(ctx context.Context, o object.Object, have object.Observed, wasRejected bool) (object.Observed, error) {
	u, err := r.Get(ctx, o.Ref())
	if apierrors.IsNotFound(err) {
		return object.Observed{}, errRaced
	}
	if err != nil {
		return object.Observed{}, err
	}
	u.SetResourceVersion(have.Version) // a newer version has not been checked, and may not be ours any more
	claimed, err := claim(u)
	if err != nil || !claimed && wasRejected {
		return r.replace(ctx, o, u)
	}
	owned := u
	if claimed {
		if owned, err = r.put(ctx, o.Ref(), u); rejected(err) {
			return r.replace(ctx, o, u)
		}
		if err == nil {
			err = r.pace.Wait(ctx)
		}
		if err != nil {
			return object.Observed{}, err
		}
	}
	now, err := r.apply(ctx, o, map[string]any{"resourceVersion": owned.GetResourceVersion(), "uid": have.UID})
	if rejected(err) {
		return r.replace(ctx, o, owned)
	}
	if err != nil {
		return object.Observed{}, err
	}
	return r.complete(ctx, o, now)
}

// replace replaces the specification of u, and adds our metadata. It is done only if the
// object still has the version of u.
func (r *Remote) replace(ctx context.Context, o object.Object, u *unstructured.Unstructured) (object.Observed, error) {
	u.Object["spec"] = o.SpecMap()
	u.SetLabels(object.Together(u.GetLabels(), o.Labels))
	u.SetAnnotations(object.Together(u.GetAnnotations(), o.Annotations))
	u.SetManagedFields(nil) // the API server maintains them
	u, err := r.put(ctx, o.Ref(), u)
	if err != nil {
		return object.Observed{}, err
	}
	return object.Observe(o.Kind, u), nil
}

// put writes an object over the version u of it.
func (r *Remote) put(ctx context.Context, ref object.Ref, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := r.pace.Wait(ctx); err != nil {
		return nil, err
	}
	body, err := u.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return answer(r.of(r.client.Put(), ref).Param("fieldManager", object.FieldManager).Body(body).Do(ctx))
}
