package azure_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
)

const (
	subscription = "11111111-1111-1111-1111-111111111111"
	other        = "22222222-2222-2222-2222-222222222222"
	inGroup      = "/subscriptions/" + subscription + "/resourceGroups/Shop/providers/Microsoft."
	sets         = inGroup + "Compute/virtualMachineScaleSets/"
	vms          = inGroup + "Compute/virtualMachines/"
	nics         = inGroup + "Network/networkInterfaces/"
)

// machine is one of Azure's, ordinary or an instance of a uniform set.
type machine struct {
	name, address       string // the address is that of its primary interface
	power, provisioning string // running and Succeeded if empty
	health              string // without the extension if empty
	zone                string
	tags                map[string]string
	// more are further interfaces, and further configurations of the first.
	moreInterfaces, moreConfigurations []string
	noInterface, hiddenInterface       bool
	noView                             bool // its state is not known
}

// set is a scale set.
type set struct {
	flexible bool
	tags     map[string]string
	members  []machine
}

// azureOf is a subscription's part of Azure, on the fakes of the SDK. Its faults stand
// before them, as a network does.
type azureOf struct {
	mu       sync.Mutex
	sets     map[string]set     // by name
	machines map[string]machine // ordinary ones that are in no set
	fault    func(r request) answer
	requests []request
	pagers   map[string]*servers // those that are in the middle of a list
}

// request is one that arrived.
type request struct {
	api  string // as the SDK calls it
	page int    // of a list, from 0
	at   time.Time
	*http.Request
}

// answer is what a fault makes of a request; nil for that of the fakes.
type answer func(r request) (*http.Response, error)

func newAzure() *azureOf {
	return &azureOf{sets: map[string]set{}, machines: map[string]machine{}, pagers: map[string]*servers{}}
}

// change changes what there is.
func (a *azureOf) change(c func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c()
}

// fails has requests answered otherwise, until it is called with nil.
func (a *azureOf) fails(fault func(r request) answer) {
	a.change(func() { a.fault = fault })
}

// asked counts the requests of an API since the last call, of all if it is empty.
func (a *azureOf) asked(api string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.requests {
		if strings.Contains(r.api, api) {
			n++
		}
	}
	a.requests = nil
	return n
}

// Do implements [policy.Transporter].
func (a *azureOf) Do(r *http.Request) (*http.Response, error) {
	api, _ := r.Context().Value(runtime.CtxAPINameKey{}).(string)
	path, page, _ := strings.Cut(r.URL.Path, "/fake_page_")
	this := request{api: api, at: time.Now(), Request: r}
	for _, digit := range page {
		this.page = 10*this.page + int(digit-'0')
	}
	a.mu.Lock()
	fault := a.fault
	a.requests = append(a.requests, this)
	key := path + "?" + r.URL.RawQuery
	if this.page == 0 || a.pagers[key] == nil {
		a.pagers[key] = a.serve() // a fake that was left in the middle of a list would go on there
	}
	s := a.pagers[key]
	a.mu.Unlock()
	if fault != nil {
		if otherwise := fault(this); otherwise != nil {
			return otherwise(this)
		}
	}
	response, err := s.do(api, r)
	if err == nil && strings.Contains(r.URL.Path, other) { // which has the same
		return replaced(response, subscription, other), nil
	}
	return response, err
}

// status answers with an error, as Azure does.
func status(code int, name string, header ...string) answer {
	return func(r request) (*http.Response, error) {
		response := text(code, `{"error": {"code": "`+name+`", "message": "as asked for"}}`)(r)
		for i := 0; i+1 < len(header); i += 2 {
			response.Header.Set(header[i], header[i+1])
		}
		return response, nil
	}
}

// body answers with a text.
func body(of string) answer {
	return func(r request) (*http.Response, error) { return text(http.StatusOK, of)(r), nil }
}

func text(code int, of string) func(r request) *http.Response {
	return func(r request) *http.Response {
		return &http.Response{
			StatusCode: code, Status: http.StatusText(code), Request: r.Request, Body: io.NopCloser(strings.NewReader(of)),
			Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(len(of)),
		}
	}
}

// hang never answers.
func hang(r request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func tagsOf(tags map[string]string) map[string]*string {
	all := map[string]*string{}
	for key, value := range tags {
		all[key] = new(value)
	}
	return all
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func (m machine) statuses() []*armcompute.InstanceViewStatus {
	if m.noView {
		return nil
	}
	return []*armcompute.InstanceViewStatus{
		{Code: new("ProvisioningState/" + strings.ToLower(or(m.provisioning, "Succeeded")))}, {Code: new("PowerState/" + or(m.power, "running"))},
	}
}

func (m machine) vmHealth() *armcompute.VirtualMachineHealthStatus {
	if m.health == "" {
		return nil
	}
	return &armcompute.VirtualMachineHealthStatus{Status: &armcompute.InstanceViewStatus{Code: new("HealthState/" + m.health)}}
}

func (m machine) zones() []*string {
	if m.zone == "" {
		return nil
	}
	return []*string{new(m.zone)}
}

// interfacesAt returns the interfaces of a machine, whose URIs begin alike.
func (m machine) interfacesAt(machineURI, prefix string) (list []*armnetwork.Interface) {
	if m.noInterface {
		return nil
	}
	one := func(name string, primary bool, addresses ...string) *armnetwork.Interface {
		i := &armnetwork.Interface{ID: new(prefix + name), Name: new(name), Properties: &armnetwork.InterfacePropertiesFormat{
			Primary: new(primary), VirtualMachine: &armnetwork.SubResource{ID: new(strings.ToUpper(machineURI))},
		}}
		for n, address := range addresses {
			i.Properties.IPConfigurations = append([]*armnetwork.InterfaceIPConfiguration{{Properties: &armnetwork.InterfaceIPConfigurationPropertiesFormat{
				Primary: new(n == 0), PrivateIPAddress: new(address),
			}}}, i.Properties.IPConfigurations...) // the primary one is the last
		}
		return i
	}
	for n, address := range m.moreInterfaces {
		list = append(list, one(m.name+"-more-"+string(rune('a'+n)), false, address))
	}
	return append(list, one(m.name+"-nic", true, append([]string{m.address}, m.moreConfigurations...)...))
}

func (m machine) profile(machineURI, prefix string) *armcompute.NetworkProfile {
	p := &armcompute.NetworkProfile{}
	list := m.interfacesAt(machineURI, prefix)
	for _, i := range list {
		p.NetworkInterfaces = append(p.NetworkInterfaces, &armcompute.NetworkInterfaceReference{
			ID: new(strings.ToLower(*i.ID)), Properties: &armcompute.NetworkInterfaceReferenceProperties{Primary: i.Properties.Primary},
		})
	}
	return p
}

// replaced is an answer with a word replaced.
func replaced(r *http.Response, old, with string) *http.Response {
	of, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil {
		return r
	}
	return text(r.StatusCode, strings.ReplaceAll(string(of), old, with))(request{Request: r.Request})
}
