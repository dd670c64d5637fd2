package azure

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/isthmus-mesh/isthmus/internal/kubeconfig"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/machines"
)

// azureResources is the resource name of objects that each define a service on
// machines of Azure.
const azureResources = "azureresources"

// objects reads AzureResource objects from a cluster. Each round lists them: machines
// are not known sooner, and a list cannot miss a change.
type objects struct {
	Kubernetes
	timeout time.Duration
}

func (o objects) read(ctx context.Context) machines.Objects {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	list, err := o.list(ctx)
	if err != nil {
		return failed(err)
	}
	read := machines.Objects{Place: azureResources}
	for i := range list {
		d, rejected := definition(&list[i])
		if rejected != nil {
			read.Rejected = append(read.Rejected, *rejected)
			continue
		}
		read.Definitions = append(read.Definitions, d)
	}
	return read
}

// pageSize is the number of objects in a page.
const pageSize = 500

// list returns all objects, or an error.
func (o objects) list(ctx context.Context) (all []unstructured.Unstructured, err error) {
	target, err := kubeconfig.Load(o.Kubeconfig, o.Context, "isthmus")
	if err != nil {
		return nil, fmt.Errorf("kubernetes.%w", err)
	}
	client, err := dynamic.NewForConfig(target)
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %s: %w", target.Host, err)
	}
	kind := client.Resource(schema.GroupVersionResource{Group: "isthmus.io", Version: "v1alpha1", Resource: azureResources})
	for next := ""; ; {
		page, err := kind.List(ctx, metav1.ListOptions{Limit: pageSize, Continue: next})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", target.Host, err)
		}
		all = append(all, page.Items...)
		if next = page.GetContinue(); next == "" {
			return all, nil
		}
	}
}

// failed returns the result of a failed list.
func failed(err error) machines.Objects {
	o := machines.Objects{Place: azureResources, Err: err}
	switch {
	case apierrors.IsNotFound(err):
		o.Absent, o.Err = true, fmt.Errorf("%w; the API server has no such kind: install its custom resource definition, or take kubernetes out", err)
	case apierrors.IsForbidden(err):
		o.Absent, o.Err = true, fmt.Errorf("%w; allow list", err)
	}
	return o
}

// definition returns the service that an object defines, or why it is rejected.
func definition(u *unstructured.Unstructured) (machines.Definition, *model.Rejection) {
	d := machines.Definition{
		Name: u.GetName() + "." + azureResources + ".isthmus.io", Place: azureResources,
		Where: "AzureResource " + u.GetNamespace() + "/" + u.GetName(),
	}
	err := into(u.Object["spec"], &d.Service)
	d.Namespace = u.GetNamespace()
	if err == nil {
		err = d.Validate("spec.")
	}
	if err == nil {
		return d, nil
	}
	return d, &model.Rejection{
		Ref:   model.Ref{Kind: model.KindService, Key: model.Key{Namespace: d.Namespace, Name: d.Name}},
		Place: d.Place, Object: d.Where, Where: d.Where, Reason: err.Error(),
	}
}

func into(spec any, s *machines.Service) error {
	text, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, s)
}
