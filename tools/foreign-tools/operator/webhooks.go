package operator

import (
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Admission defaults and validates Websites.
type Admission struct{}

func (a Admission) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &Website{}).WithDefaulter(a).WithValidator(a).Complete()
}

func (Admission) Default(_ context.Context, site *Website) error {
	if site.Spec.Replicas == nil {
		two := int32(2)
		site.Spec.Replicas = &two
	}
	return nil
}

func (Admission) ValidateCreate(_ context.Context, site *Website) (admission.Warnings, error) {
	if _, ok := site.Spec.Pages["index.html"]; !ok {
		return nil, errors.New("spec.pages: index.html is missing")
	}
	if len(site.Spec.Pages) == 1 {
		return admission.Warnings{"a site of one page"}, nil
	}
	return nil, nil
}

func (a Admission) ValidateUpdate(ctx context.Context, _, site *Website) (admission.Warnings, error) {
	return a.ValidateCreate(ctx, site)
}

func (Admission) ValidateDelete(_ context.Context, site *Website) (admission.Warnings, error) {
	if site.Annotations["keep"] == "true" {
		return nil, errors.New("the site is to be kept")
	}
	return nil, nil
}
