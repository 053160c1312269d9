import {
  type Clock,
  EventRecorder,
  type Informer,
  type KubeClient,
  type KubeObject,
  type Logger,
  silentLogger,
  systemClock,
} from "@spry/kube";
import { createAutoscaler } from "./autoscaler/autoscaler.ts";
import { type ControllerContext, createCaches } from "./context.ts";
import { createCronJobController } from "./cron-job/cron-job.ts";
import { createDeploymentController } from "./deployment/deployment.ts";
import { createDisruptionController } from "./disruption.ts";
import { createEndpointSliceController } from "./endpoints/endpoint-slice.ts";
import { createEndpointsController } from "./endpoints/endpoints.ts";
import { createEndpointsMirroring } from "./endpoints/mirroring.ts";
import { createGarbageCollector } from "./garbage-collector/garbage-collector.ts";
import { createJobController } from "./job/job.ts";
import { createNamespaceController } from "./namespace.ts";
import { createReplicaSetController } from "./replica-set.ts";
import { createResourceQuotaController } from "./resource-quota.ts";
import { createScheduler } from "./scheduler.ts";
import { createRootCaMaps, createServiceAccountController } from "./service-account.ts";

export interface ControllersOptions {
  client: KubeClient;
  /** PEM of the API server's authority, handed to Namespaces as `kube-root-ca.crt`. */
  rootCa?: string;
  clock?: Clock;
  log?: Logger;
  signal: AbortSignal;
}

/** What kube-scheduler and kube-controller-manager do for a cluster. Resolves once all are at work. */
export async function startControllers(options: ControllersOptions): Promise<void> {
  const { client, rootCa, clock = systemClock, log = silentLogger, signal } = options;
  const caches = createCaches(client, clock, log);
  const contextOf = (component: string): ControllerContext => ({
    client,
    caches,
    clock,
    log,
    events: new EventRecorder({ client, component, clock, log }),
  });
  const collector = createGarbageCollector(contextOf("garbage-collector-controller"));
  const rootCaMaps = createRootCaMaps(contextOf("root-ca-certificate-publisher"));
  const controllers = [
    createScheduler(contextOf("default-scheduler")),
    createReplicaSetController(contextOf("replicaset-controller")),
    createDeploymentController(contextOf("deployment-controller")),
    createJobController(contextOf("job-controller")),
    createCronJobController(contextOf("cronjob-controller")),
    createDisruptionController(contextOf("controllermanager")),
    createEndpointSliceController(contextOf("endpoint-slice-controller")),
    createEndpointsController(contextOf("endpoint-controller")),
    createEndpointsMirroring(contextOf("endpoint-slice-mirroring-controller")),
    createAutoscaler(contextOf("horizontal-pod-autoscaler")),
    createNamespaceController(contextOf("namespace-controller")),
    createServiceAccountController(contextOf("serviceaccount-controller"), rootCa, rootCaMaps),
    createResourceQuotaController(contextOf("resourcequota-controller")),
    collector,
  ];
  const shared = Object.values(caches) as unknown as Informer<KubeObject>[];
  const informers = [...shared, rootCaMaps as unknown as Informer<KubeObject>];
  for (const informer of informers) void informer.run(signal);
  // Deciding on half a picture would create what is only not seen yet.
  await Promise.all(informers.map((informer) => informer.synced));
  for (const controller of controllers) void controller.run(signal);
  await collector.watch(signal);
}
