import {
  type Clock,
  type Logger,
  silentLogger,
  systemClock,
  type Transport,
  transportOf,
  requestTurn,
} from "@spry/kube";
import { Admission } from "./admission/admission.ts";
import { type PodSecurityLevel } from "./admission/pod-security/policy.ts";
import { WebhookConnections } from "./admission/webhooks/webhook-connections.ts";
import { Aggregator } from "./aggregation/aggregator.ts";
import { EventKeeper } from "./kinds/event/keeper.ts";
import { AuthenticationMap } from "./aggregation/authentication-map.ts";
import { type FrontProxy } from "./aggregation/front-proxy.ts";
import { LocalApiServices } from "./aggregation/local-api-services.ts";
import { Authenticator } from "./authentication/authenticator.ts";
import { joinedHeaders } from "./authentication/impersonation.ts";
import { LegacyTokenKeeper } from "./authentication/legacy-token-keeper.ts";
import { ServiceAccountTokens } from "./authentication/service-account-tokens.ts";
import { openSigningKey } from "./authentication/signing-key.ts";
import { AggregationKeeper } from "./authorization/aggregation-keeper.ts";
import { Authorizer } from "./authorization/authorizer.ts";
import { ensureBootstrapPolicy } from "./authorization/bootstrap-policy.ts";
import { RuleResolver } from "./authorization/rule-resolver.ts";
import { type Engine } from "./engine.ts";
import { ownAdministrator } from "./handlers/growth.ts";
import { type UserInfo } from "./request.ts";
import { Dispatcher } from "./http/dispatcher.ts";
import { textOf } from "./http/message.ts";
import { OwnRequest } from "./http/own-request.ts";
import { bodyBudget } from "./http/incoming-body.ts";
import { answerBudget } from "./http/outgoing-answer.ts";
import { type ListenOptions, type Listener, listen } from "./http/listener.ts";
import { ClusterAddresses } from "./kinds/service/cluster-addresses.ts";
import { DefinitionKeeper } from "./kinds/definition/keeper.ts";
import { systemClasses } from "./kinds/priority-class/strategy.ts";
import { Catalog } from "./resources/catalog.ts";
import { strategies } from "./resources/strategies.ts";
import { Conversions } from "./schema/conversion/conversions.ts";
import { HistoryKeeper } from "./store/history-keeper.ts";
import { defaultStoreQuota } from "./store/store-quota.ts";
import { Store } from "./store/store.ts";
import { type StoreQuota } from "./store/stored-bytes.ts";
import { Watches } from "./watch/watches.ts";

export interface ApiServerOptions {
  /** Holds `state.db` and the key of ServiceAccount tokens; created when missing. ":memory:" keeps nothing. */
  dataDir: string;
  /** PEM of the authority that listeners are known by; put into Secrets with ServiceAccount tokens. */
  rootCa?: string | Promise<string>;
  /** By which aggregated API servers recognize this one; they refuse its users without. */
  frontProxy?: FrontProxy | Promise<FrontProxy>;
  clock?: Clock;
  log?: Logger;
  /** The kubelet of a node, for logs of its Pods; undefined when the node is not connected. */
  kubelet?: (nodeName: string) => Transport | undefined;
  /** The Pod Security level of each namespace that has no label for it, except the platform's own (default: `baseline`). */
  podSecurity?: PodSecurityLevel;
  /** How much the objects may take; a part of the heap when it is not given (`defaultStoreQuota`). */
  storeQuota?: StoreQuota | undefined;
  /** Bytes that the bodies of all requests under way may take; a part of the heap when it is not given. */
  bodyBytes?: number;
}

export interface ApiServer {
  /** The API without a socket, as this user (an administrator when none is given). */
  transport(user?: UserInfo): Transport;
  /** The API over TLS, to clients with a certificate of `clientCa`. */
  listen(options: ListenOptions): Promise<Listener>;
  /** A sentence when more is stored than the quota allows: until objects are deleted, nothing can be added. */
  readonly storeProblem: string | undefined;
  /** Ends all watches and listeners; resolves when everything is on disk. */
  close(): Promise<void>;
}

const administrator: UserInfo = {
  name: ownAdministrator,
  groups: ["system:masters", "system:authenticated"],
};
const initialNamespaces = ["default", "kube-system", "kube-public", "kube-node-lease"];

/** Starts an API server on what its data directory holds. */
export async function createApiServer(options: ApiServerOptions): Promise<ApiServer> {
  const { clock = systemClock, log = silentLogger, podSecurity = "baseline" } = options;
  const store = new Store(options.dataDir, options.storeQuota ?? defaultStoreQuota());
  const problem = store.bytes.problem();
  if (problem) log.error({}, `${problem}: until some are deleted, nothing can be added`);
  const closing = new AbortController();
  const catalog = new Catalog(strategies);
  const resolver = new RuleResolver(store);
  const tokens = new ServiceAccountTokens(store, openSigningKey(options.dataDir), clock);
  const authorizer = new Authorizer(resolver);
  const connections = new WebhookConnections(store, clock);
  const conversions = new Conversions(connections);
  const admission = new Admission({
    store,
    catalog,
    authorizer,
    connections,
    conversions,
    clock,
    log,
    podSecurity,
  });
  const { frontProxy } = options;
  const onChange = () => void catalog.generation++;
  const aggregator = new Aggregator({ store, clock, log, frontProxy, onChange });
  const engine: Engine = {
    store,
    catalog,
    admission,
    aggregator,
    conversions,
    authorizer,
    authenticator: new Authenticator(tokens),
    addresses: new ClusterAddresses(),
    watches: new Watches(),
    clock,
    log,
    kubelet: options.kubelet ?? (() => undefined),
    closing: closing.signal,
  };
  for (const { object } of store.list("/services")) engine.addresses.adopt(object);
  const keeper = new DefinitionKeeper(engine);
  keeper.start();
  const dispatcher = new Dispatcher(engine);
  const transport = (user: UserInfo = administrator): Transport =>
    transportOf(
      async (request) => {
        const response = await dispatcher.handle(request, user, joinedHeaders(request.headers));
        return response.toWeb();
      },
      async (request) => {
        const headers = Object.entries(request.headers).map(
          ([key, value]) => [key, [value]] as const,
        );
        await requestTurn(user.name);
        const { status, body } = await dispatcher.handle(new OwnRequest(request), user, headers);
        return { status, text: await textOf(body) };
      },
    );
  await Promise.all(initialNamespaces.map((name) => ensureNamespace(transport(), engine, name)));
  await ensurePriorityClasses(transport(), engine);
  await ensureBootstrapPolicy(store, clock);
  const aggregation = new AggregationKeeper(store, log);
  await aggregation.start();
  const legacyTokens = new LegacyTokenKeeper(store, tokens, options.rootCa, log);
  legacyTokens.start();
  const localServices = new LocalApiServices({ store, catalog, clock, log });
  await localServices.start();
  const authenticationMap = new AuthenticationMap({ store, clock, log, frontProxy });
  authenticationMap.start();
  const events = new EventKeeper({ store, clock, log });
  events.start();
  const histories = new HistoryKeeper({ store, clock });
  histories.start();
  aggregator.start();
  const listeners = new Set<Listener>();
  const bodies = bodyBudget(options.bodyBytes);
  const answers = answerBudget();
  return {
    transport,
    get storeProblem() {
      return store.bytes.problem();
    },
    async listen(listenOptions) {
      authenticationMap.clientsOf(listenOptions.clientCa);
      const listener = await listen(
        { dispatcher, authenticator: engine.authenticator, bodies, answers },
        listenOptions,
        log,
      );
      listeners.add(listener);
      return listener;
    },
    async close() {
      closing.abort();
      await Promise.all([...listeners].map((listener) => listener.close()));
      aggregator.stop();
      histories.stop();
      const keepers = [keeper, aggregation, legacyTokens, localServices, authenticationMap, events];
      await Promise.all(keepers.map((each) => each.stop()));
      resolver.close();
      connections.close();
      await store.close();
    },
  };
}

/** With its ServiceAccount, so that the first Pods need not wait for a controller. */
async function ensureNamespace(transport: Transport, engine: Engine, name: string): Promise<void> {
  await ensure(transport, engine, "Namespace", { plural: "namespaces", namespace: "", name });
  const account = { plural: "serviceaccounts", namespace: name, name: "default" };
  await ensure(transport, engine, "ServiceAccount", account);
}

/** Names that Pods may rely on. */
async function ensurePriorityClasses(transport: Transport, { store }: Engine): Promise<void> {
  const path = "/apis/scheduling.k8s.io/v1/priorityclasses";
  for (const { name, value, description } of systemClasses) {
    const collection = "scheduling.k8s.io/priorityclasses";
    if (store.get({ collection, namespace: "", name })) continue;
    const object = { kind: "PriorityClass", metadata: { name }, value, description };
    const headers = { "content-type": "application/json", "user-agent": "spry-apiserver" };
    const url = `http://kubernetes.internal${path}`;
    const body = JSON.stringify({ apiVersion: "scheduling.k8s.io/v1", ...object });
    const response = await transport(new Request(url, { method: "POST", headers, body }));
    if (!response.ok) throw new Error(`creating ${name}: ${await response.text()}`);
  }
}

async function ensure(
  transport: Transport,
  { store }: Engine,
  kind: string,
  { plural, namespace, name }: { plural: string; namespace: string; name: string },
): Promise<void> {
  if (store.get({ collection: `/${plural}`, namespace, name })) return;
  const body = JSON.stringify({ apiVersion: "v1", kind, metadata: { name } });
  const headers = { "content-type": "application/json", "user-agent": "spry-apiserver" };
  const scope = namespace ? `namespaces/${namespace}/` : "";
  const url = `http://kubernetes.internal/api/v1/${scope}${plural}`;
  const response = await transport(new Request(url, { method: "POST", headers, body }));
  // The deletion of a Namespace that was under way when the server ended continues.
  if (response.ok || response.status === 403) return;
  throw new Error(`creating ${kind} ${name}: ${await response.text()}`);
}
