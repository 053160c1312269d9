import {
  type ApiRule,
  apiRules,
  certificatesSecretName,
  type ClaimedHost,
  type IstioGateway,
} from "@spry/function";
import {
  type Clock,
  deepEqual,
  type Informer,
  isNotFound,
  type KubeClient,
  keyOf,
  type Logger,
  messageOf,
  type ObjectKey,
  type ReconcileResult,
  resources,
  type Secret,
  type Service,
  timestamp,
} from "@spry/kube";
import { v1beta1SpecOf } from "../conversion/convert.ts";
import { apiRulesV1beta1 } from "../conversion/v1beta1.ts";
import { claimsOf, heldSince, hostsOf } from "../routes/claims.ts";
import { routesOf } from "../routes/routes-of.ts";
import { collectCertificates } from "./certificates.ts";
import { certificatesOfOwn, type HostAuthority } from "./own-certificates.ts";
import { diagnose, type RelatedObjects, type Verdict } from "./diagnose.ts";

export interface ExposureCaches {
  apiRules: Informer<ApiRule>;
  gateways: Informer<IstioGateway>;
  services: Informer<Service>;
  /** Of type `kubernetes.io/tls`. */
  certificates: Informer<Secret>;
  /** The Secret that is made of them. */
  collected: Informer<Secret>;
}

export interface ReconcilerDeps {
  client: KubeClient;
  caches: ExposureCaches;
  /** Where the Secret of collected certificates is. */
  namespace: string;
  ownCertificates: boolean;
  authority?: HostAuthority;
  clock: Clock;
  log?: Logger;
}

/** A certificate's end may be far away; timers are not for months. */
const longestMs = 3_600_000;
const parallel = 8;

/**
 * One pass over all APIRules: whose a host is depends on the others. Writes the Secret of certificates first, then each
 * status that has changed.
 */
export function exposureReconciler(deps: ReconcilerDeps): () => Promise<ReconcileResult> {
  const { client, caches, clock } = deps;
  async function writeStatus(rule: ApiRule, verdict: Verdict, names: string[]): Promise<void> {
    const { state, description, observedGeneration } = rule.status ?? {};
    const now = timestamp(clock);
    const hosts = names.map((name) => ({ name, since: heldSince(rule, name) ?? now }));
    const isSame =
      state === verdict.state &&
      description === verdict.description &&
      deepEqual(rule.status?.hosts, hosts);
    if (isSame && observedGeneration === rule.metadata.generation) return;
    try {
      await patchStatus(client, rule, { ...verdict, hosts, lastProcessedTime: now });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  return async () => {
    const all = [...caches.apiRules.list()];
    const gatewayOf = (key: ObjectKey) => caches.gateways.get(key);
    const claims = claimsOf(all, gatewayOf);
    const used = new Set(all.flatMap((rule) => hostsOf(rule, gatewayOf).gateway ?? []));
    const secretOf = (key: ObjectKey) => caches.certificates.get(key);
    const collected = collectCertificates(used, secretOf, clock.now());
    const own = await issueOwn(deps, all);
    await writeCertificates(deps, { ...own.data, ...collected.data });
    const objects: RelatedObjects = {
      gatewayOf,
      serviceOf: (key) => caches.services.get(key),
      claims,
      certificates: collected.inspected,
      ownCertificates: deps.ownCertificates,
    };
    const ownOf = (rule: ApiRule) => {
      const names = hostsOf(rule, gatewayOf).hosts.flatMap(({ name }) => name ?? []);
      return [...new Set(names)].filter((name) => claims.get(name) === rule);
    };
    const pending = all.filter(({ metadata }) => !metadata.deletionTimestamp);
    const workers = Array.from({ length: parallel }, async () => {
      for (let rule = pending.shift(); rule; rule = pending.shift())
        await writeStatus(rule, diagnose(rule, objects), ownOf(rule));
    });
    await Promise.all(workers);
    const changesAt = Math.min(collected.changesAt, own.changesAt);
    if (!Number.isFinite(changesAt)) return {};
    const untilChange = changesAt - clock.now() + 1_000;
    return { requeueAfterMs: Math.min(longestMs, Math.max(1_000, untilChange)) };
  };
}

/** For hosts whose Gateways leave the certificate to the platform. */
async function issueOwn(deps: ReconcilerDeps, all: readonly ApiRule[]) {
  const { caches, namespace, ownCertificates, authority, clock, log } = deps;
  if (!authority) return { data: {}, changesAt: Number.POSITIVE_INFINITY };
  const hosts = routesOf(all, caches.services.list(), caches.gateways.list(), { ownCertificates })
    .filter(({ certificate }) => certificate.kind === "own")
    .map(({ host }) => host);
  const present = caches.collected.get(`${namespace}/${certificatesSecretName}`)?.data ?? {};
  return certificatesOfOwn(hosts, authority, present, clock.now(), (error) =>
    log?.warn({ error: messageOf(error) }, "issuing a certificate failed, trying again"),
  );
}

/**
 * Through the version that the object was written in: another version's schema may refuse what that one allows, and an
 * API server checks the whole object.
 */
async function patchStatus(
  client: KubeClient,
  rule: ApiRule,
  written: Verdict & { hosts: ClaimedHost[]; lastProcessedTime: string },
): Promise<void> {
  const { state, description, hosts, lastProcessedTime } = written;
  const { name = "", namespace, generation: observedGeneration } = rule.metadata;
  const options = { subresource: "status" };
  if (v1beta1SpecOf(rule)) {
    const codes: Record<string, string> = { Ready: "OK", Warning: "WARNING", Error: "ERROR" };
    const APIRuleStatus = { code: codes[state], desc: description };
    const status = { APIRuleStatus, hosts, lastProcessedTime, observedGeneration };
    await client.patch(apiRulesV1beta1, { name, namespace }, { status }, options);
  } else {
    const status = { state, description, hosts, lastProcessedTime, observedGeneration };
    await client.patch(apiRules, { name, namespace }, { status }, options);
  }
}

/** The only Secret that the gateway may read: what Gateways name, and nothing else of their namespaces. */
async function writeCertificates(
  { client, caches, namespace }: ReconcilerDeps,
  data: Record<string, string>,
): Promise<void> {
  const target = { name: certificatesSecretName, namespace };
  const present = caches.collected.get(keyOf({ metadata: target }));
  if (present && deepEqual(present.data ?? {}, data)) return;
  const secret: Secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { ...target, labels: { "app.kubernetes.io/managed-by": "spry" } },
    type: "Opaque",
    data,
  };
  await client.apply(resources.secrets, secret, { force: true });
}
