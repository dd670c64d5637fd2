package istio

import "github.com/isthmus-mesh/isthmus/model"

// trafficDistribution is the annotation with the preferred endpoints of a ServiceEntry.
const trafficDistribution = "networking.istio.io/traffic-distribution"

func trafficOf(meta model.Meta) model.Traffic {
	distribution, _ := meta.Annotations.Get(trafficDistribution)
	return model.Traffic{Prefer: model.PreferenceNamed(distribution)}
}
