package istio

import (
	"context"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// complete removes from the specification what others have put into it, which
// server-side apply leaves there. u is the object as it was applied.
func (r *remote) complete(ctx context.Context, o Object, u *unstructured.Unstructured) (Observed, error) {
	if now := observedOf(o.Kind, u); o.differs(now) != "spec" {
		return now, nil
	}
	return r.replace(ctx, o, u)
}

// takeOver writes an object that cannot be applied over what was observed of
// it. Apply keeps what others own, and both together may be invalid, or select no
// endpoint: selectors are united label by label. So the ownership
// of the specification is taken from them first, which changes nothing else.
// Should that not help, or should there be nothing to take after it was rejected, the
// specification is replaced, whoever owns it.
func (r *remote) takeOver(ctx context.Context, o Object, have Observed, wasRejected bool) (Observed, error) {
	u, err := r.get(ctx, o.Ref())
	if apierrors.IsNotFound(err) {
		return Observed{}, errRaced
	}
	if err != nil {
		return Observed{}, err
	}
	u.SetResourceVersion(have.Version) // anything newer has not been looked at, and may not be ours any more
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
			return Observed{}, err
		}
	}
	now, err := r.apply(ctx, o, map[string]any{"resourceVersion": owned.GetResourceVersion(), "uid": have.UID})
	if rejected(err) {
		return r.replace(ctx, o, owned)
	}
	if err != nil {
		return Observed{}, err
	}
	return r.complete(ctx, o, now)
}

// replace puts the specification in the place of that of u, and what we say of
// the metadata beside what it has. It is done only if the object still has the
// version of u.
func (r *remote) replace(ctx context.Context, o Object, u *unstructured.Unstructured) (Observed, error) {
	u.Object["spec"] = o.spec()
	u.SetLabels(together(u.GetLabels(), o.Labels))
	u.SetAnnotations(together(u.GetAnnotations(), o.Annotations))
	u.SetManagedFields(nil) // the API server keeps account of them
	u, err := r.put(ctx, o.Ref(), u)
	if err != nil {
		return Observed{}, err
	}
	return observedOf(o.Kind, u), nil
}

// put writes an object over the version of it that is u.
func (r *remote) put(ctx context.Context, ref Ref, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := r.pace.Wait(ctx); err != nil {
		return nil, err
	}
	body, err := u.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return answer(r.of(r.client.Put(), ref).Param("fieldManager", fieldManager).Body(body).Do(ctx))
}

// together is a map with the entries of another, which count if both have one.
func together(all, ours map[string]string) map[string]string {
	union := make(map[string]string, len(all)+len(ours))
	maps.Copy(union, all)
	maps.Copy(union, ours)
	return union
}

// rejected reports whether the API server, or a webhook of it, does not take an
// object for what is in it.
func rejected(err error) bool {
	return err != nil && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsForbidden(err) && strings.Contains(err.Error(), "admission webhook"))
}
