package kubernetes

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/isthmus-mesh/isthmus/model"
)

// distributionAnnotation is equivalent to the field trafficDistribution, as in Istio.
const distributionAnnotation = "networking.istio.io/traffic-distribution"

// trafficOf returns a Service's choice of endpoints for its clients.
func trafficOf(s *corev1.Service) (t model.Traffic) {
	if policy := s.Spec.InternalTrafficPolicy; policy != nil {
		t.NodeLocal = *policy == corev1.ServiceInternalTrafficPolicyLocal
	}
	if t.Prefer = model.PreferenceNamed(value(s.Spec.TrafficDistribution)); t.Prefer == "" {
		t.Prefer = model.PreferenceNamed(s.Annotations[distributionAnnotation])
	}
	if s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP {
		t.Affinity = model.ClientIP
	}
	t.Headless = s.Spec.ClusterIP == corev1.ClusterIPNone
	return t
}
