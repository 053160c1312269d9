package operator

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

var (
	api   client.Client
	cache client.Client
	ctx   context.Context
)

// The cluster is that of KUBECONFIG.
func TestMain(m *testing.M) {
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	var cancel context.CancelFunc
	ctx, cancel = context.WithCancel(context.Background())
	defer cancel()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return 0, err
	}
	if err := AddToScheme(scheme); err != nil {
		return 0, err
	}
	existing := true
	environment := &envtest.Environment{
		Scheme:                scheme,
		UseExistingCluster:    &existing,
		CRDInstallOptions:     envtest.CRDInstallOptions{Paths: []string{"config/crd"}, CleanUpAfterUse: true},
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{"config/webhook"}},
	}
	config, err := environment.Start()
	if err != nil {
		return 0, fmt.Errorf("starting the environment: %w", err)
	}
	options := environment.WebhookInstallOptions
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "website-operator",
		LeaderElectionNamespace:       "default",
		LeaderElectionReleaseOnCancel: true,
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: options.LocalServingHost, Port: options.LocalServingPort, CertDir: options.LocalServingCertDir,
		}),
	})
	if err != nil {
		return 0, err
	}
	var recorder events.EventRecorder = mgr.GetEventRecorder("website-operator")
	if err := (&Reconciler{Client: mgr.GetClient(), Recorder: recorder}).SetupWithManager(mgr); err != nil {
		return 0, err
	}
	if err := (Admission{}).SetupWithManager(mgr); err != nil {
		return 0, err
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.ConfigMap{}, "owner", func(object client.Object) []string {
		owner := metav1.GetControllerOf(object)
		if owner == nil {
			return nil
		}
		return []string{owner.Name}
	}); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	select {
	case <-mgr.Elected():
	case err := <-ended:
		return 0, fmt.Errorf("the manager ended: %w", err)
	case <-time.After(30 * time.Second):
		return 0, fmt.Errorf("the manager was not elected")
	}
	cache = mgr.GetClient()
	if api, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return 0, err
	}
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return 0, fmt.Errorf("the cache did not fill")
	}
	until(nil, "the webhook server", func() error { return mgr.GetWebhookServer().StartedChecker()(nil) })
	code := m.Run()
	cancel()
	if err := <-ended; err != nil {
		return code, fmt.Errorf("ending the manager: %w", err)
	}
	return code, environment.Stop()
}

// until asks again until there is no error, for at most 20 s.
func until(t *testing.T, what string, check func() error) {
	var err error
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	if t == nil {
		panic(fmt.Sprintf("waiting for %s: %v", what, err))
	}
	t.Helper()
	t.Fatalf("waiting for %s: %v", what, err)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func website(name string) *Website {
	return &Website{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       WebsiteSpec{Pages: map[string]string{"index.html": "hello", "about.html": "us"}},
	}
}

func get(object client.Object, name string) error {
	return api.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, object)
}

func TestLeaderHoldsALease(t *testing.T) {
	var lease coordinationv1.Lease
	must(t, get(&lease, "website-operator"))
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		t.Fatalf("nobody holds the lease: %v", lease.Spec)
	}
}

func TestReconcilesFromCreationToDeletion(t *testing.T) {
	site := website("life")
	must(t, api.Create(ctx, site))
	if *site.Spec.Replicas != 2 {
		t.Fatalf("the webhook did not default the replicas: %d", *site.Spec.Replicas)
	}
	var deployment appsv1.Deployment
	until(t, "the Deployment", func() error { return get(&deployment, "life") })
	if *deployment.Spec.Replicas != 2 || !metav1.IsControlledBy(&deployment, site) {
		t.Fatalf("unexpected Deployment: %v", deployment)
	}
	applied := deployment.ManagedFields[0]
	if applied.Manager != "website-operator" || applied.Operation != metav1.ManagedFieldsOperationApply {
		t.Fatalf("unexpected manager of the Deployment: %v", deployment.ManagedFields)
	}
	deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: deployment.Generation, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2}
	must(t, api.Status().Update(ctx, &deployment))
	until(t, "readiness", func() error {
		must(t, get(site, "life"))
		if !meta.IsStatusConditionTrue(site.Status.Conditions, "Ready") {
			return fmt.Errorf("status: %+v", site.Status)
		}
		return nil
	})
	until(t, "the Event", func() error {
		var list eventsv1.EventList
		must(t, api.List(ctx, &list, client.InNamespace("default")))
		for _, event := range list.Items {
			if event.Regarding.Name == "life" && event.Reason == "Deployed" {
				return nil
			}
		}
		return fmt.Errorf("%d others", len(list.Items))
	})

	before := site.DeepCopyObject().(*Website)
	delete(site.Spec.Pages, "about.html")
	must(t, api.Patch(ctx, site, client.MergeFrom(before)))
	until(t, "the page to go", func() error {
		var pages corev1.ConfigMap
		must(t, get(&pages, "life"))
		if len(pages.Data) != 1 {
			return fmt.Errorf("pages: %v", pages.Data)
		}
		return nil
	})

	must(t, api.Delete(ctx, site))
	until(t, "the finalizer", func() error {
		if err := get(site, "life"); !apierrors.IsNotFound(err) {
			return fmt.Errorf("still there: %v", err)
		}
		return nil
	})
}

func TestCacheIndexesAndWatches(t *testing.T) {
	must(t, api.Create(ctx, website("indexed")))
	until(t, "the index", func() error {
		var found corev1.ConfigMapList
		must(t, cache.List(ctx, &found, client.MatchingFields{"owner": "indexed"}))
		if len(found.Items) != 1 {
			return fmt.Errorf("%d ConfigMaps", len(found.Items))
		}
		return nil
	})
}

func TestRefusals(t *testing.T) {
	eleven := int32(11)
	for name, each := range map[string]struct {
		change func(*Website)
		text   string
	}{
		"webhook": {func(site *Website) { delete(site.Spec.Pages, "index.html") }, `admission webhook "validate.websites.example.com" denied the request: spec.pages: index.html is missing`},
		"cel":     {func(site *Website) { site.Spec.Replicas = &eleven }, "at most 10 replicas"},
	} {
		t.Run(name, func(t *testing.T) {
			site := website("refused")
			each.change(site)
			if err := api.Create(ctx, site); err == nil || !strings.Contains(err.Error(), each.text) {
				t.Fatalf("expected %q, got %v", each.text, err)
			}
		})
	}
	kept := website("kept")
	kept.Annotations = map[string]string{"keep": "true"}
	must(t, api.Create(ctx, kept))
	if err := api.Delete(ctx, kept); !apierrors.IsForbidden(err) {
		t.Fatalf("expected a refusal, got %v", err)
	}
}

func TestConvertsBetweenVersions(t *testing.T) {
	old := &OldWebsite{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "old"}, Spec: OldWebsiteSpec{Page: "old page"}}
	must(t, api.Create(ctx, old))
	var site Website
	must(t, get(&site, "old"))
	if site.Spec.Pages["index.html"] != "old page" {
		t.Fatalf("converted to %v", site.Spec)
	}
	site.Spec.Pages["index.html"] = "new page"
	until(t, "an update", func() error {
		must(t, get(&site, "old"))
		site.Spec.Pages["index.html"] = "new page"
		return api.Update(ctx, &site)
	})
	must(t, get(old, "old"))
	if old.Spec.Page != "new page" {
		t.Fatalf("converted back to %v", old.Spec)
	}
}

func TestConflictOfUpdates(t *testing.T) {
	first := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "conflict-"}, BinaryData: map[string][]byte{"b": {0, 255}}}
	must(t, api.Create(ctx, first))
	second := first.DeepCopy()
	first.Data = map[string]string{"a": "1"}
	must(t, api.Update(ctx, first))
	second.Data = map[string]string{"a": "2"}
	if err := api.Update(ctx, second); !apierrors.IsConflict(err) {
		t.Fatalf("expected a conflict, got %v", err)
	}
	if err := api.Delete(ctx, first, client.Preconditions{UID: &second.UID, ResourceVersion: &second.ResourceVersion}); !apierrors.IsConflict(err) {
		t.Fatalf("expected a conflict, got %v", err)
	}
	must(t, api.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("default"), client.MatchingLabels{"none": "such"}))
}

func TestScaleOfACustomResource(t *testing.T) {
	must(t, api.Create(ctx, website("scaled")))
	var site Website
	until(t, "the controller", func() error {
		must(t, get(&site, "scaled"))
		if len(site.Finalizers) == 0 {
			return fmt.Errorf("no finalizer yet")
		}
		return nil
	})
	scale := &autoscalingv1.Scale{}
	scale.Spec.Replicas = 5
	must(t, api.SubResource("scale").Update(ctx, &site, client.WithSubResourceBody(scale)))
	must(t, get(&site, "scaled"))
	if *site.Spec.Replicas != 5 {
		t.Fatalf("replicas: %d", *site.Spec.Replicas)
	}
}
