import { type Socket } from "node:net";
import {
  type Clock,
  type KubeClient,
  type Logger,
  type ObjectKey,
  silentLogger,
  sleep,
  systemClock,
} from "@spry/kube";
import { Destination, type DestinationPolicy } from "./activation/destination.ts";
import { Admission, type AdmissionOptions } from "./admission/admission.ts";
import { PodsInUse } from "./activation/pods-in-use.ts";
import { type Tally } from "./activation/tally.ts";
import { createFrontServer } from "./http/front-server.ts";
import { failedMessage } from "@spry/function";
import { BoundedLog } from "./http/bounded-log.ts";
import { type CallAcceptor } from "./http/waiting-calls.ts";
import { BrokenRequests } from "./attempt/broken-requests.ts";
import { drain, isLoopback, listen, type Listening } from "./http/listening.ts";
import { type Entrance } from "./inside/entrance.ts";
import { Entrances, type InsideOptions } from "./inside/entrances.ts";
import { createAdminServer } from "./metrics/admin-server.ts";
import { BearerAccess, type TokenSource } from "./metrics/bearer-access.ts";
import { Counts } from "./metrics/counts.ts";
import { GatewayMetrics } from "./metrics/gateway-metrics.ts";
import { MemoryBudget } from "./request/memory-budget.ts";
import { KnativeRoutes } from "./routing/knative-routes.ts";
import { timeoutMsOf } from "./routing/revision-policy.ts";
import { OwnHosts } from "./routing/own-hosts.ts";
import { RouteTable } from "./routing/route-table.ts";
import { ServiceRoutes } from "./routing/service-routes.ts";
import { defaultSettings, type GatewaySettings } from "./settings.ts";
import { startSources } from "./sources.ts";
import { type ExposureOptions } from "./exposure/exposure.ts";
import { ServiceTargets } from "./exposure/service-targets.ts";
import { startExposed } from "./exposure/start-exposed.ts";
import { type RequestDeps } from "./request/passage.ts";

export interface GatewayOptions extends Partial<GatewaySettings> {
  client: KubeClient;
  log?: Logger;
  clock?: Clock;
  /** One line for each request. */
  accessLog?: boolean;
  /** For how long it still accepts connections when it is closed: clients may learn of it late. */
  leaveMs?: number;
  /** How long requests in progress may take to end then. */
  drainMs?: number;
  /** Listens for callers inside the cluster where EndpointSlices say so, from the first `listen` on. */
  inside?: InsideOptions;
  /** What a scaler must know to read the counts; without it, every request is refused. */
  countsToken?: TokenSource;
  /** What clients of `/metrics` must show; absent: nothing. */
  metricsToken?: TokenSource;
  /** Hosts of the gateway itself, in addition to those of loopback: there, a path names a Function (`/async/…`). */
  ownNames?: readonly string[];
  /** Accepts requests that may wait (`Prefer: respond-async`). */
  calls?: CallAcceptor;
  /** Rows for `/metrics`, of what else is in the process. */
  moreMetrics?: () => string;
  /** Serves the hosts of APIRules. */
  exposure?: ExposureOptions;
  /** Keeps hard limits together with other gateways, from the first `listen` on; without it, each keeps them for itself. */
  admission?: AdmissionOptions;
}

export interface ListenOptions {
  host: string;
  port: number;
  /** Also listens for HTTPS, with the certificates of APIRules' hosts. */
  https?: {
    port: number;
    /** Another port will do if this one is taken. */
    orFree?: boolean;
  };
}

export interface GatewayListening extends Listening {
  readonly httpsPort: number | undefined;
}

export interface Gateway {
  /** Resolves when the routes are known. Until then requests wait. */
  readonly ready: Promise<void>;
  /** On another address than loopback, responses to requests that fail say no more than strangers may know. */
  listen(options: ListenOptions): Promise<GatewayListening>;
  /** `/metrics`, `/healthz`, `/readyz` and `/counts`, on a port that is not for the public. */
  listenAdmin(options: { host: string; port: number }): Promise<Listening>;
}

/** How much longer than `leaveMs` it stays while EndpointSlices still name it. */
const maxVacateMs = 5_000;
const defaultDrainMs = 4_000;

async function allOf(...work: (Promise<void> | undefined)[]): Promise<void> {
  await Promise.all(work.filter((each) => each !== undefined));
}

type NewDestination = [key: ObjectKey, policy: DestinationPolicy, tally?: Tally];

/** The way of a request to a Function. Informers start at once and keep its routes current. */
export function createGateway(options: GatewayOptions): Gateway {
  const clock = options.clock ?? systemClock;
  const log = options.log ?? silentLogger;
  const stop = new AbortController();
  const settings: GatewaySettings = { ...defaultSettings, ...options };
  const sources = startSources(options.client, clock, log, stop.signal, options.inside);
  const metrics = new GatewayMetrics();
  const counts = new Counts(clock, () => clock.elapsed());
  const pods = new PodsInUse();
  const broken = new BrokenRequests(clock);
  const failures = new BoundedLog(log, clock, {
    message: failedMessage,
    further: "further requests were not answered",
  });
  const createDestination = (...[key, policy, tally]: NewDestination) =>
    new Destination(key, policy, settings, clock, tally, pods);
  const services = new ServiceRoutes(sources, { ...settings, createDestination });
  /** Made below: each of the two needs the other. */
  const limits: { admission?: Admission } = {};
  const knative: KnativeRoutes = new KnativeRoutes(sources, {
    ...settings,
    admission: () => limits.admission,
    createDestination,
    tallyOf: (revision) => counts.tallyOf(revision),
    forget: (revision) => counts.forget(revision),
    appeared: (key) => services.reroute(key),
  });
  const targets = new ServiceTargets(sources.slices, { createDestination });
  const routes = new RouteTable(services, knative, sources.functions, targets);
  const ownHosts = new OwnHosts(sources);
  const { exposure } = options;
  const exposed =
    exposure &&
    startExposed(exposure, {
      client: options.client,
      targets,
      slices: sources.slices,
      clock,
      log,
      signal: stop.signal,
    });
  const admission =
    options.admission &&
    new Admission(
      {
        client: options.client,
        clock,
        log,
        token: options.countsToken,
        limitedPods: () => knative.limitedPods(),
        timeoutMsOf: (revision) => timeoutMsOf(sources.revisions.get(revision)),
        counted: (revision, change) => counts.tallyOf(revision).inherited(change),
        changed: (revision) => knative.admissionChanged(revision),
      },
      options.admission,
    );
  if (admission) limits.admission = admission;
  const admitting = new AbortController();
  const ready = allOf(sources.ready, exposed?.ready);
  const memory = new MemoryBudget(settings.maxHeldBytes);
  let isListening = false;
  return {
    ready,
    async listen(address) {
      const isPublic = !isLoopback(address.host);
      const { callers } = sources;
      const deps: RequestDeps = {
        routes,
        ownHosts,
        callers,
        metrics,
        memory,
        broken,
        failures,
        admission,
        settings,
        clock,
        log,
      };
      if (exposed) deps.exposure = exposed.serving;
      const accessLog = options.accessLog === true;
      const front = createFrontServer(deps, {
        ...settings,
        ready,
        accessLog,
        isPublic,
        calls: options.calls,
        ownNames: new Set(options.ownNames),
      });
      const { server, tunnels } = front;
      const port = await listen(server, address);
      const secure = exposed && (await exposed.listen(front, address));
      const accept = (socket: Socket, entrance: Entrance) => front.accept(socket, entrance);
      const inside = isListening ? undefined : options.inside;
      // Not before its routes are known: what a predecessor has under way is looked for among them.
      const admitted = isListening
        ? undefined
        : ready.then(async () => await admission?.run(admitting.signal));
      isListening = true;
      const entrances =
        inside && new Entrances({ slices: sources.slices, clock, log, accept }, inside);
      return {
        port,
        httpsPort: secure?.port,
        async close() {
          front.leave();
          admitting.abort();
          const { leaveMs, drainMs = defaultDrainMs } = options;
          if (leaveMs !== undefined) {
            const vacated = entrances?.vacated(leaveMs + maxVacateMs);
            await Promise.all([sleep(clock, leaveMs), vacated]);
          }
          const alongside = allOf(entrances?.close(), secure?.close(drainMs));
          await drain(server, tunnels, drainMs, clock, alongside);
          await Promise.race([admitted, sleep(clock, maxVacateMs)]);
          await admission?.close();
          stop.abort();
          routes.close();
        },
      };
    },
    async listenAdmin(address) {
      const { countsToken, metricsToken } = options;
      const access = new BearerAccess(countsToken, clock, log);
      const metricsAccess = metricsToken && new BearerAccess(metricsToken, clock, log);
      const existing = {
        hasRoute: (key: ObjectKey) => routes.has(key),
        hasRevision: (key: ObjectKey) => sources.revisions.get(key) !== undefined,
      };
      const { moreMetrics } = options;
      const deps = {
        metrics,
        existing,
        moreMetrics,
        counts,
        access,
        metricsAccess,
        ready,
        pods,
        broken,
        admission,
        clock,
      };
      const server = createAdminServer(deps, isLoopback(address.host));
      const port = await listen(server, address);
      return { port, close: () => drain(server, [], 0, clock) };
    },
  };
}
