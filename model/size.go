package model

// Size estimates how many bytes of memory a record takes, from the lengths of its texts. It
// is meant for bounds, and costs little: strings that several records share count for each.
func (r *Record) Size() int {
	return recordSize + sizeOfRef(r.Ref) + sizeOfRef(r.Owner) + len(r.Path) + len(r.Place) + len(r.Status.Stale) + sizeOfSpec(r.Spec)
}

// The estimated sizes of values without their strings and elements.
const (
	recordSize = 288
	specSize   = 256
	stringSize = 16 // without its bytes
)

func sizeOfRef(r Ref) int { return len(r.Source) + len(r.Namespace) + len(r.Name) }

func sizeOfSpec(spec Spec) int {
	switch s := spec.(type) {
	case Endpoint:
		return specSize + sizeOfEndpoint(s)
	case MergedEndpoint:
		return specSize + sizeOfEndpoint(s.Endpoint) + len(s.Source) + sizeOfStrings(s.ExportTo)
	case MergedService:
		return sizeOfSpec(s.Service) + sizeOfStrings(s.Sources)
	case Service:
		ports := s.Ports.Len() * 4 * stringSize
		for _, p := range s.Ports.items {
			ports += len(p.Path)
		}
		return specSize + ports + sizeOfMeta(s.Meta) + sizeOfStrings(s.Hosts) + sizeOfStrings(s.Addresses) + sizeOfStrings(s.ExportTo) +
			sizeOfStrings(s.SubjectAltNames) + sizeOfLabels(s.WorkloadSelector)
	case Workload:
		return 2*specSize + sizeOfMeta(s.Meta) + sizeOfEndpoint(s.Endpoint) + sizeOfStrings(s.Only)
	case Scope:
		return specSize + sizeOfMeta(s.Meta) + sizeOfLabels(s.WorkloadSelector) + sizeOfStrings(s.Hosts) + len(s.Content)
	case Consumption:
		size := specSize
		for _, p := range s.Providers.items {
			size += 2*stringSize + len(p.Namespace) + len(p.Host)
		}
		return size
	case Split:
		size := specSize + sizeOfMeta(s.Meta) + len(s.Host) + len(s.NoEffect)
		for _, b := range s.Backends {
			size += 6*stringSize + len(b.Service.Namespace) + len(b.Service.Host) + len(b.Source) + sizeOfLabels(b.Labels)
		}
		return size
	case Hold:
		size := specSize + len(s.Reason)
		for _, i := range s.Items.items {
			size += 4*stringSize + len(i.Namespace) + len(i.Name)
		}
		return size
	case SourceMark:
		return specSize + sizeOfJudgements(s.Judgements) + sizeOfStrings(s.Departure.Successors)
	case Opaque:
		return specSize + sizeOfMeta(s.Meta) + len(s.Type) + len(s.Content)
	}
	return specSize
}

func sizeOfJudgements(j Judgements) (size int) {
	for _, judgement := range j.items {
		size += specSize + sizeOfStrings(List[string]{judgement.With})
		for _, held := range judgement.Held {
			size += specSize + len(held.Reason)
			for _, item := range held.Items {
				size += 5*stringSize + len(item.Namespace) + len(item.Name) + 8*len(item.Endpoints)
			}
		}
	}
	return size
}

func sizeOfEndpoint(e Endpoint) int {
	size := len(e.Address) + sizeOfStrings(e.Also) + sizeOfLabels(e.Labels)
	for _, name := range e.Ports.names {
		size += stringSize + len(name)
	}
	return size
}

func sizeOfMeta(m Meta) int { return sizeOfLabels(m.Labels) + sizeOfLabels(m.Annotations) }

func sizeOfLabels(l Labels) (size int) {
	for i, name := range l.names {
		size += 2*stringSize + len(name) + len(l.values[i])
	}
	return size
}

func sizeOfStrings(l List[string]) (size int) {
	for _, s := range l.items {
		size += stringSize + len(s)
	}
	return size
}
