import { controllerOf, type UnknownObject } from "@spry/kube";
import { forbidden } from "../../errors.ts";
import { type Store } from "../../store/store.ts";
import { type AdmissionAttributes, nameOf } from "../attributes.ts";
import { baselineChecks } from "./baseline-checks.ts";
import { type Check, type CheckedPod, containersOf, type Violation } from "./checked-pod.ts";
import { isPlatformNamespace } from "../platform-namespaces.ts";
import {
  type LevelVersion,
  type PodSecurityLevel,
  type Policy,
  policyOf,
  policyOfLevel,
  printed,
  sameLevel,
  strictness,
} from "./policy.ts";
import { restrictedChecks } from "./restricted-checks.ts";

/** Existing Pods that are looked at when a namespace's level changes. */
const maxExisting = 3000;
/** Whole Pods are checked but for these, which change no containers. */
const ignoredSubresources = new Set([
  "exec",
  "attach",
  "binding",
  "eviction",
  "log",
  "portforward",
  "proxy",
  "status",
]);
const templated = new Set([
  "apps/deployments",
  "apps/replicasets",
  "apps/statefulsets",
  "apps/daemonsets",
  "batch/jobs",
  "batch/cronjobs",
  "/replicationcontrollers",
  "/podtemplates",
]);

/**
 * The admission plugin PodSecurity (`k8s.io/pod-security-admission`). The namespaces of the platform are its
 * exemptions: neither the default nor their labels apply there.
 */
export class PodSecurity {
  readonly #store: Store;
  readonly #defaults: Policy;

  /** `level` is that of each namespace without labels of its own, for all modes. */
  constructor(store: Store, level: PodSecurityLevel) {
    this.#store = store;
    this.#defaults = policyOfLevel(level);
  }

  validate(attributes: AdmissionAttributes): void {
    const { request, object, operation } = attributes;
    if (!object || (operation !== "CREATE" && operation !== "UPDATE")) return;
    const { collection } = request.type;
    if (collection === "/namespaces") this.#validateNamespace(attributes, object);
    else if (collection === "/pods") this.#validatePod(attributes, object);
    else if (templated.has(collection)) this.#validateTemplate(attributes, object);
  }

  #validatePod({ request, old, object }: AdmissionAttributes, pod: CheckedPod): void {
    if (ignoredSubresources.has(request.subresource)) return;
    const policy = this.#policyIn(request.namespace);
    if (!policy || (old && !isSignificant(pod, old))) return;
    const { enforce } = policy;
    const violations = violationsOf(pod, enforce);
    if (violations.length > 0) {
      const told = `violates PodSecurity "${printed(enforce)}": ${detailed(violations)}`;
      throw forbidden(request.type, nameOf({ request, operation: "CREATE", object, old }), told);
    }
    warn(request.warnings, pod, policy);
  }

  #validateTemplate({ request }: AdmissionAttributes, object: UnknownObject): void {
    if (request.subresource) return;
    const policy = this.#policyIn(request.namespace);
    const template = policy && templateOf(object);
    if (template) warn(request.warnings, template, policy);
  }

  #policyIn(namespace: string): Policy | undefined {
    if (isPlatformNamespace(namespace)) return undefined;
    const found = this.#store.get({ collection: "/namespaces", namespace: "", name: namespace });
    return policyOf(found?.object.metadata.labels, this.#defaults).policy;
  }

  #validateNamespace({ request, old }: AdmissionAttributes, object: UnknownObject): void {
    if (request.subresource) return;
    const { labels, name = "" } = object.metadata;
    const { policy, errors } = policyOf(labels, this.#defaults);
    const before = policyOf(old?.metadata.labels, this.#defaults);
    const told = JSON.stringify(errors.all);
    if (!old || told !== JSON.stringify(before.errors.all)) {
      errors.throwIfAny("Namespace", "", name);
    }
    if (old && !isPlatformNamespace(name))
      request.warnings.push(...this.#aboutExisting(name, policy.enforce, before.policy.enforce));
  }

  /** What a stricter level would refuse of what is there. */
  #aboutExisting(namespace: string, now: LevelVersion, before: LevelVersion): string[] {
    if (sameLevel(now, before) || now.level === "privileged") return [];
    if (now.minor === before.minor && strictness(now.level) <= strictness(before.level)) return [];
    const pods = oneOfEachFirst(this.#store.list("/pods", namespace).map(({ object }) => object));
    const namesByReason = new Map<string, string[]>();
    for (const pod of pods.slice(0, maxExisting)) {
      const violations = violationsOf(pod, now);
      if (violations.length === 0) continue;
      const reasons = violations.map(({ reason }) => reason).join(", ");
      namesByReason.set(reasons, [...(namesByReason.get(reasons) ?? []), pod.metadata.name ?? ""]);
    }
    const warnings: string[] = [];
    if (pods.length > maxExisting) {
      warnings.push(
        `new PodSecurity enforce level only checked against the first ${maxExisting} of ${pods.length} existing pods`,
      );
    }
    if (namesByReason.size === 0) return warnings;
    warnings.push(
      `existing pods in namespace "${namespace}" violate the new PodSecurity enforce level "${printed(now)}"`,
    );
    const each = [...namesByReason].map(([reasons, names]) => `${shownNames(names)}: ${reasons}`);
    return [...warnings, ...each.sort()];
  }
}

function shownNames(names: string[]): string {
  const [first, ...others] = names.sort();
  if (others.length === 0) return first ?? "";
  return `${first} (and ${others.length} other pod${others.length === 1 ? "" : "s"})`;
}

/** One Pod of each controller before all others of it. */
function oneOfEachFirst(pods: UnknownObject[]): UnknownObject[] {
  const seen = new Set<string>();
  const [first, others]: [UnknownObject[], UnknownObject[]] = [[], []];
  for (const pod of pods) {
    const owner = controllerOf(pod)?.uid;
    if (owner !== undefined && seen.has(owner)) others.push(pod);
    else first.push(pod);
    if (owner !== undefined) seen.add(owner);
  }
  return [...first, ...others];
}

function warn(warnings: string[], pod: CheckedPod, { warn: level }: Policy): void {
  const violations = violationsOf(pod, level);
  if (violations.length === 0) return;
  warnings.push(`would violate PodSecurity "${printed(level)}": ${detailed(violations)}`);
}

function detailed(violations: Violation[]): string {
  return violations
    .map(({ reason, detail }) => (detail ? `${reason} (${detail})` : reason))
    .join(", ");
}

function violationsOf(pod: CheckedPod, { level, minor }: LevelVersion): Violation[] {
  if (level === "privileged") return [];
  const applies = ({ since, until = Infinity }: Check) =>
    minor === "latest" ? until === Infinity : since <= minor && minor < until;
  const own = level === "restricted" ? restrictedChecks.filter(applies) : [];
  const overridden = new Set(own.map(({ overrides }) => overrides));
  const checks = [
    ...baselineChecks.filter((each) => applies(each) && !overridden.has(each.id)),
    ...own,
  ];
  return checks.flatMap(({ check }) => check(pod) ?? []);
}

function templateOf(object: UnknownObject): CheckedPod | undefined {
  if (object.kind === "PodTemplate") return object.template as CheckedPod | undefined;
  const spec = object.spec as
    | { template?: CheckedPod; jobTemplate?: { spec?: { template?: CheckedPod } } }
    | undefined;
  return spec?.template ?? spec?.jobTemplate?.spec?.template;
}

/** Of what can change of a Pod, only images, added containers and annotations about seccomp matter. */
function isSignificant(pod: CheckedPod, old: CheckedPod): boolean {
  const facts = (each: CheckedPod) =>
    JSON.stringify([
      containersOf(each).map(({ name, image }) => [name, image]),
      Object.entries(each.metadata?.annotations ?? {})
        .filter(([key]) => key.includes("seccomp.security.alpha.kubernetes.io/"))
        .sort(([a], [b]) => (a < b ? -1 : 1)),
    ]);
  return facts(pod) !== facts(old);
}
