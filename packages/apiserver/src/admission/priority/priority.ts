import { type Pod } from "@spry/kube";
import { forbidden } from "../../errors.ts";
import { type Store } from "../../store/store.ts";
import { type AdmissionAttributes, nameOf } from "../attributes.ts";
import { isPlatformNamespace, platformNamespaces } from "../platform-namespaces.ts";

const collection = "scheduling.k8s.io/priorityclasses";

export interface PriorityClass {
  metadata: { name?: string };
  value?: number;
  globalDefault?: boolean;
  preemptionPolicy?: string;
}

/** Pods of these are evicted last, and by no other Pod. */
function isOfSystem(found: PriorityClass | undefined): boolean {
  return found?.metadata.name?.startsWith("system-") ?? false;
}

type PrioritySpec = NonNullable<Pod["spec"]> & { preemptionPolicy?: string };

/**
 * The admission plugin Priority (`plugin/pkg/admission/priority`). Other than there, the priorities of the system are for Pods
 * of the platform's namespaces alone: on one machine no quota keeps them from tenants.
 */
export class PriorityAdmission {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Gives a new Pod the priority of its class; an existing one keeps its own. */
  mutate(attributes: AdmissionAttributes): void {
    const { request, operation, object, old } = attributes;
    if (request.type.collection !== "/pods" || request.subresource) return;
    const spec = object?.spec as PrioritySpec | undefined;
    if (!spec) return;
    if (operation === "CREATE") return this.#establish(attributes, spec);
    const before = old?.spec as PrioritySpec | undefined;
    if (spec.priority === undefined && before?.priority !== undefined)
      spec.priority = before.priority;
    if (!spec.preemptionPolicy && before?.preemptionPolicy) {
      spec.preemptionPolicy = before.preemptionPolicy;
    }
  }

  /** There is one default at most. */
  validate(attributes: AdmissionAttributes): void {
    const { request, operation, object } = attributes;
    if (request.type.collection !== collection || request.subresource) return;
    if (!(object as PriorityClass | undefined)?.globalDefault) return;
    const present = this.#defaultClass()?.metadata.name;
    if (present === undefined || (operation === "UPDATE" && present === request.name)) return;
    throw forbidden(
      request.type,
      nameOf(attributes),
      `PriorityClass ${present} is already marked as default. Only one default can exist`,
    );
  }

  #establish(attributes: AdmissionAttributes, spec: PrioritySpec): void {
    const { type } = attributes.request;
    const refuse = (cause: string) => forbidden(type, nameOf(attributes), cause);
    const computed = "priority admission controller computed";
    const found = this.#classOf(spec, refuse);
    if (isOfSystem(found) && !isPlatformNamespace(attributes.request.namespace)) {
      throw refuse(
        `pods with priorityClassName ${found?.metadata.name} are only permitted in the namespaces of the platform: ${platformNamespaces.join(", ")}`,
      );
    }
    if (found?.metadata.name) spec.priorityClassName = found.metadata.name;
    const value = found?.value ?? 0;
    if (spec.priority !== undefined && spec.priority !== value) {
      throw refuse(
        `the integer value of priority (${spec.priority}) must not be provided in pod spec; ${computed} ${value} from the given PriorityClass name`,
      );
    }
    spec.priority = value;
    const policy = found ? found.preemptionPolicy : "PreemptLowerPriority";
    if (policy === undefined) return;
    if (spec.preemptionPolicy !== undefined && spec.preemptionPolicy !== policy) {
      throw refuse(
        `the string value of PreemptionPolicy (${spec.preemptionPolicy}) must not be provided in pod spec; ${computed} ${policy} from the given PriorityClass name`,
      );
    }
    spec.preemptionPolicy = policy;
  }

  #classOf(spec: PrioritySpec, refuse: (cause: string) => Error): PriorityClass | undefined {
    const name = spec.priorityClassName;
    if (!name) return this.#defaultClass();
    const found = this.#store.get({ collection, namespace: "", name });
    if (!found) throw refuse(`no PriorityClass with name ${name} was found`);
    return found.object;
  }

  /** Of several, which a race can leave, the lowest. */
  #defaultClass(): PriorityClass | undefined {
    const defaults = this.#store
      .list(collection)
      .map(({ object }) => object as PriorityClass)
      .filter(({ globalDefault }) => globalDefault);
    return defaults.sort((a, b) => (a.value ?? 0) - (b.value ?? 0))[0];
  }
}
