package operator

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const (
	finalizer = group + "/farewell"
	manager   = client.FieldOwner("website-operator")
)

// Reconciler makes a ConfigMap and a Deployment of each Website, by server-side apply.
type Reconciler struct {
	client.Client
	Recorder events.EventRecorder
}

func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&Website{}).Owns(&corev1.ConfigMap{}).Owns(&appsv1.Deployment{}).Complete(r)
}

func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var site Website
	if err := r.Get(ctx, request.NamespacedName, &site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !site.DeletionTimestamp.IsZero() {
		r.Recorder.Eventf(&site, nil, corev1.EventTypeNormal, "Farewell", "Finalize", "the site %s goes", site.Name)
		if controllerutil.RemoveFinalizer(&site, finalizer) {
			return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, &site))
		}
		return ctrl.Result{}, nil
	}
	before := site.DeepCopyObject().(*Website)
	if controllerutil.AddFinalizer(&site, finalizer) {
		return ctrl.Result{}, r.Patch(ctx, &site, client.MergeFrom(before))
	}
	if err := errors.Join(r.applyPages(ctx, &site), r.applyDeployment(ctx, &site)); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.updateStatus(ctx, &site)
}

func ownedBy(site *Website) *metav1apply.OwnerReferenceApplyConfiguration {
	return metav1apply.OwnerReference().WithAPIVersion(group + "/v1").WithKind("Website").
		WithName(site.Name).WithUID(site.UID).WithController(true).WithBlockOwnerDeletion(true)
}

func (r *Reconciler) applyPages(ctx context.Context, site *Website) error {
	pages := corev1apply.ConfigMap(site.Name, site.Namespace).WithOwnerReferences(ownedBy(site)).WithData(site.Spec.Pages)
	return r.Apply(ctx, pages, manager, client.ForceOwnership)
}

func (r *Reconciler) applyDeployment(ctx context.Context, site *Website) error {
	labels := map[string]string{"website": site.Name}
	container := corev1apply.Container().WithName("web").WithImage("nginx:1").
		WithPorts(corev1apply.ContainerPort().WithContainerPort(80))
	deployment := appsv1apply.Deployment(site.Name, site.Namespace).WithOwnerReferences(ownedBy(site)).
		WithSpec(appsv1apply.DeploymentSpec().WithReplicas(*site.Spec.Replicas).
			WithSelector(metav1apply.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(corev1apply.PodTemplateSpec().WithLabels(labels).
				WithSpec(corev1apply.PodSpec().WithContainers(container))))
	return r.Apply(ctx, deployment, manager, client.ForceOwnership)
}

func (r *Reconciler) updateStatus(ctx context.Context, site *Website) error {
	var deployment appsv1.Deployment
	if err := r.Get(ctx, client.ObjectKeyFromObject(site), &deployment); err != nil {
		// The cache has not seen what was applied just now; its event comes.
		return client.IgnoreNotFound(err)
	}
	before := site.DeepCopyObject().(*Website)
	site.Status.ObservedGeneration = site.Generation
	site.Status.ReadyReplicas = deployment.Status.ReadyReplicas
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Deploying", ObservedGeneration: site.Generation}
	if deployment.Status.ReadyReplicas >= *site.Spec.Replicas {
		ready.Status, ready.Reason = metav1.ConditionTrue, "Deployed"
	}
	if meta.SetStatusCondition(&site.Status.Conditions, ready) {
		r.Recorder.Eventf(site, nil, corev1.EventTypeNormal, ready.Reason, "Deploy", "%d of %d ready", deployment.Status.ReadyReplicas, *site.Spec.Replicas)
	}
	return r.Status().Patch(ctx, site, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
