// Package operator is an operator in the manner of kubebuilder's: a kind with two versions, its controller and its webhooks.
package operator

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
)

const group = "example.com"

// Website is version v1, the one that is stored and that the controller works with.
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WebsiteSpec   `json:"spec"`
	Status            WebsiteStatus `json:"status,omitempty"`
}

type WebsiteSpec struct {
	Pages    map[string]string `json:"pages"`
	Replicas *int32            `json:"replicas,omitempty"`
}

type WebsiteStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	ReadyReplicas      int32              `json:"readyReplicas,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

type WebsiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Website `json:"items"`
}

// OldWebsite is version v1alpha1, which knew one page.
type OldWebsite struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              OldWebsiteSpec `json:"spec"`
	Status            WebsiteStatus  `json:"status,omitempty"`
}

type OldWebsiteSpec struct {
	Page     string `json:"page"`
	Replicas *int32 `json:"replicas,omitempty"`
}

func (*Website) Hub() {}

func (old *OldWebsite) ConvertTo(hub conversion.Hub) error {
	site, ok := hub.(*Website)
	if !ok {
		return fmt.Errorf("converting a Website: unexpected %T", hub)
	}
	site.ObjectMeta, site.Status = old.ObjectMeta, old.Status
	site.Spec = WebsiteSpec{Pages: map[string]string{"index.html": old.Spec.Page}, Replicas: old.Spec.Replicas}
	return nil
}

func (old *OldWebsite) ConvertFrom(hub conversion.Hub) error {
	site, ok := hub.(*Website)
	if !ok {
		return fmt.Errorf("converting a Website: unexpected %T", hub)
	}
	old.ObjectMeta, old.Status = site.ObjectMeta, site.Status
	old.Spec = OldWebsiteSpec{Page: site.Spec.Pages["index.html"], Replicas: site.Spec.Replicas}
	return nil
}

func (site *Website) DeepCopyObject() runtime.Object {
	result := *site
	site.ObjectMeta.DeepCopyInto(&result.ObjectMeta)
	result.Spec.Pages = map[string]string{}
	for name, page := range site.Spec.Pages {
		result.Spec.Pages[name] = page
	}
	result.Spec.Replicas = copied(site.Spec.Replicas)
	result.Status = site.Status.copied()
	return &result
}

func (old *OldWebsite) DeepCopyObject() runtime.Object {
	result := *old
	old.ObjectMeta.DeepCopyInto(&result.ObjectMeta)
	result.Spec.Replicas = copied(old.Spec.Replicas)
	result.Status = old.Status.copied()
	return &result
}

func (list *WebsiteList) DeepCopyObject() runtime.Object {
	result := *list
	list.ListMeta.DeepCopyInto(&result.ListMeta)
	result.Items = make([]Website, len(list.Items))
	for index := range list.Items {
		result.Items[index] = *list.Items[index].DeepCopyObject().(*Website)
	}
	return &result
}

func (status WebsiteStatus) copied() WebsiteStatus {
	status.Conditions = append([]metav1.Condition(nil), status.Conditions...)
	return status
}

func copied(number *int32) *int32 {
	if number == nil {
		return nil
	}
	value := *number
	return &value
}

// AddToScheme makes both versions known.
func AddToScheme(scheme *runtime.Scheme) error {
	v1 := schema.GroupVersion{Group: group, Version: "v1"}
	scheme.AddKnownTypes(v1, &Website{}, &WebsiteList{})
	metav1.AddToGroupVersion(scheme, v1)
	v1alpha1 := schema.GroupVersion{Group: group, Version: "v1alpha1"}
	scheme.AddKnownTypeWithName(v1alpha1.WithKind("Website"), &OldWebsite{})
	metav1.AddToGroupVersion(scheme, v1alpha1)
	return nil
}
