package servicecenter

// Service is a version of a microservice in the API's form. The order of the fields is the
// order of the recorded answers.
type Service struct {
	ID           string            `json:"serviceId,omitempty"`
	App          string            `json:"appId,omitempty"`
	Name         string            `json:"serviceName,omitempty"`
	Version      string            `json:"version,omitempty"`
	Description  string            `json:"description,omitempty"`
	Level        string            `json:"level,omitempty"`
	Schemas      []string          `json:"schemas,omitempty"`
	Status       string            `json:"status,omitempty"`
	Properties   map[string]string `json:"properties,omitempty"`
	Timestamp    string            `json:"timestamp,omitempty"`
	Alias        string            `json:"alias,omitempty"`
	ModTimestamp string            `json:"modTimestamp,omitempty"`
	Environment  string            `json:"environment,omitempty"`
	Framework    *Framework        `json:"framework,omitempty"`
	RegisterBy   string            `json:"registerBy,omitempty"`
}

// Framework is the framework that a service declares.
type Framework struct {
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
}

// Instance is an instance of a service in the API's form.
type Instance struct {
	ID           string            `json:"instanceId,omitempty"`
	ServiceID    string            `json:"serviceId,omitempty"`
	Endpoints    []string          `json:"endpoints,omitempty"`
	HostName     string            `json:"hostName,omitempty"`
	Status       string            `json:"status,omitempty"`
	Properties   map[string]string `json:"properties,omitempty"`
	HealthCheck  *HealthCheck      `json:"healthCheck,omitempty"`
	Timestamp    string            `json:"timestamp,omitempty"`
	DataCenter   *DataCenter       `json:"dataCenterInfo,omitempty"`
	ModTimestamp string            `json:"modTimestamp,omitempty"`
	Version      string            `json:"version,omitempty"`
}

// HealthCheck says how an instance shows that it lives. An interval is in
// seconds.
type HealthCheck struct {
	Mode     string `json:"mode,omitempty"`
	Port     int32  `json:"port,omitempty"`
	Interval int32  `json:"interval,omitempty"`
	Times    int32  `json:"times,omitempty"`
	URL      string `json:"url,omitempty"`
}

// DataCenter is where an instance runs.
type DataCenter struct {
	Name   string `json:"name,omitempty"`
	Region string `json:"region,omitempty"`
	Zone   string `json:"availableZone,omitempty"`
}

// Key identifies a version of a service in an event, and the service to look up in a find.
type Key struct {
	Tenant      string `json:"tenant,omitempty"`
	Environment string `json:"environment,omitempty"`
	App         string `json:"appId,omitempty"`
	Name        string `json:"serviceName,omitempty"`
	Alias       string `json:"alias,omitempty"`
	Version     string `json:"version,omitempty"`
}

// Event is an event for a watcher.
type Event struct {
	Action   string    `json:"action,omitempty"`
	Key      *Key      `json:"key,omitempty"`
	Instance *Instance `json:"instance,omitempty"`
}

// The actions of an event.
const (
	Create = "CREATE"
	Update = "UPDATE"
	Delete = "DELETE"
	Expire = "EXPIRE"
)

type (
	serviceBody   struct{ Service *Service }
	instanceBody  struct{ Instance *Instance }
	serviceAnswer struct {
		Service *Service `json:"service,omitempty"`
	}
	servicesAnswer struct {
		Services []*Service `json:"services,omitempty"`
	}
	serviceIDAnswer struct {
		ID string `json:"serviceId,omitempty"`
	}
	instanceIDAnswer struct {
		ID string `json:"instanceId,omitempty"`
	}
	instanceAnswer struct {
		Instance *Instance `json:"instance,omitempty"`
	}
	instancesAnswer struct {
		Instances []*Instance `json:"instances,omitempty"`
	}
	propertiesBody struct {
		Properties map[string]string `json:"properties"`
	}
)

type (
	batchRequest struct {
		Services []struct {
			Service *Key   `json:"service"`
			Rev     string `json:"rev"`
		} `json:"services"`
		Instances []struct {
			Instance *instanceKey `json:"instance"`
			Rev      string       `json:"rev"`
		} `json:"instances"`
	}
	batchAnswer struct {
		Services  *batchPart `json:"services,omitempty"`
		Instances *batchPart `json:"instances,omitempty"`
	}
	batchPart struct {
		Failed      []*batchFailure `json:"failed,omitempty"`
		NotModified []int           `json:"notModified,omitempty"`
		Updated     []batchUpdate   `json:"updated,omitempty"`
	}
	batchFailure struct {
		Indexes []int  `json:"indexes"`
		Error   *Error `json:"error"`
	}
	batchUpdate struct {
		Index     int         `json:"index"`
		Rev       string      `json:"rev"`
		Instances []*Instance `json:"instances,omitempty"`
	}
	instanceKey struct {
		ServiceID  string `json:"serviceId,omitempty"`
		InstanceID string `json:"instanceId,omitempty"`
	}
)
