package main

import (
	"fmt"
	"reflect"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// kind is what a message can be at the top of a body or an answer.
type kind struct {
	apiVersion string // "*" when every group-version has it
	kind       string
	goType     reflect.Type
}

func (k kind) name() string { return k.apiVersion + " " + k.kind }

var libraries = []func(*runtime.Scheme) error{
	admissionregistration.AddToScheme,
	apiextensions.AddToScheme,
	apiregistration.AddToScheme,
	apps.AddToScheme,
	authentication.AddToScheme,
	authorization.AddToScheme,
	autoscalingv1.AddToScheme,
	autoscalingv2.AddToScheme,
	batch.AddToScheme,
	coordination.AddToScheme,
	core.AddToScheme,
	discovery.AddToScheme,
	events.AddToScheme,
	meta.AddMetaToScheme,
	networking.AddToScheme,
	policy.AddToScheme,
	rbac.AddToScheme,
	scheduling.AddToScheme,
	storage.AddToScheme,
}

// Kinds that are no resource with a collection of its own: what subresources and verbs take and give.
var others = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Binding"},
	{Version: "v1", Kind: "Status"},
	{Group: "policy", Version: "v1", Kind: "Eviction"},
	{Group: "autoscaling", Version: "v1", Kind: "Scale"},
	{Group: "authentication.k8s.io", Version: "v1", Kind: "SelfSubjectReview"},
	{Group: "authentication.k8s.io", Version: "v1", Kind: "TokenRequest"},
	{Group: "authentication.k8s.io", Version: "v1", Kind: "TokenReview"},
	{Group: "authorization.k8s.io", Version: "v1", Kind: "LocalSubjectAccessReview"},
	{Group: "authorization.k8s.io", Version: "v1", Kind: "SelfSubjectAccessReview"},
	{Group: "authorization.k8s.io", Version: "v1", Kind: "SelfSubjectRulesReview"},
	{Group: "authorization.k8s.io", Version: "v1", Kind: "SubjectAccessReview"},
	{Group: "meta.k8s.io", Version: "v1", Kind: "PartialObjectMetadata"},
	{Group: "meta.k8s.io", Version: "v1", Kind: "PartialObjectMetadataList"},
}

var ofEveryGroup = []any{
	meta.CreateOptions{},
	meta.DeleteOptions{},
	meta.PatchOptions{},
	meta.UpdateOptions{},
	meta.WatchEvent{},
}

func kindsOf(served *served) ([]kind, error) {
	scheme := runtime.NewScheme()
	for _, add := range libraries {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	wanted := []schema.GroupVersionKind{}
	for _, each := range served.GroupVersions {
		version := schema.GroupVersion{Group: each.Group, Version: each.Version}
		for _, resource := range each.Resources {
			wanted = append(wanted, version.WithKind(resource.Kind), version.WithKind(resource.Kind+"List"))
		}
	}
	kinds := []kind{}
	taken := map[schema.GroupVersionKind]bool{}
	for _, each := range append(wanted, others...) {
		goType := scheme.AllKnownTypes()[each]
		if goType == nil {
			return nil, fmt.Errorf("%s is in none of the libraries: add its package to them", each)
		}
		if !taken[each] {
			kinds = append(kinds, kind{each.GroupVersion().String(), each.Kind, goType})
		}
		taken[each] = true
	}
	for _, each := range ofEveryGroup {
		goType := reflect.TypeOf(each)
		kinds = append(kinds, kind{"*", goType.Name(), goType})
	}
	return kinds, nil
}
