package istio

import "github.com/isthmus-mesh/isthmus/model"

// trafficDistribution is the annotation by which a ServiceEntry says which endpoints are
// used before others.
const trafficDistribution = "networking.istio.io/traffic-distribution"

func trafficOf(meta model.Meta) model.Traffic {
	distribution, _ := meta.Annotations.Get(trafficDistribution)
	return model.Traffic{Prefer: model.PreferenceNamed(distribution)}
}
