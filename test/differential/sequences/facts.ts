import { type KubeObject } from "@spry/kube";
import { type View } from "./observer.ts";

interface EventObject extends KubeObject {
  involvedObject?: { kind?: string; name?: string };
  source?: { component?: string };
  reportingComponent?: string;
  type?: string;
  reason?: string;
  message?: string;
  count?: number;
}

/** What two clusters can be expected to say alike: objects and events by role, and what each went through. */
export type Facts = Record<string, unknown>;

export function factsOf(view: View): Facts {
  const { objects, history } = view.roles.normalised({
    objects: view.objects(),
    history: view.history(),
  });
  const facts: Facts = {};
  for (const [of, values] of Object.entries(history))
    facts[`history of ${of}`] = withoutRepeats(values.map(alike));
  const events = new Map<string, number>();
  const shown = new Map<string, unknown[]>();
  for (const object of objects) {
    if (object.kind === "Event") {
      const { type, reason, message, count, involvedObject, source, reportingComponent } =
        object as EventObject;
      const component = source?.component || reportingComponent;
      const key = `event ${involvedObject?.kind}/${involvedObject?.name} ${type} ${reason} (${component}): ${alike(message ?? "")}`;
      // How often something is tried again depends on how fast the machine is.
      const times = reason?.startsWith("Failed") ? 1 : (events.get(key) ?? 0) + (count || 1);
      events.set(key, times);
    } else {
      const key = `${object.kind}/${object.metadata.name}`;
      shown.set(key, [...(shown.get(key) ?? []), comparable(object)]);
    }
  }
  for (const [key, count] of events) facts[key] = count;
  for (const [key, list] of shown) {
    // Pods of one owner have one role: they are distinguished by how they are, not by their names.
    const sorted = list.map((each) => JSON.stringify(each)).sort();
    for (const [index, text] of sorted.entries())
      facts[sorted.length > 1 ? `${key}#${index}` : key] = JSON.parse(text);
  }
  return facts;
}

/** What each server gives an object for itself. */
const ownFields = new Set(["uid", "creationTimestamp", "managedFields"]);

/** How often a slice is written on the way is a matter of timing, and so is its generation. */
function isOwn({ kind }: KubeObject, field: string): boolean {
  return ownFields.has(field) || (kind === "EndpointSlice" && field === "generation");
}

function comparable(object: KubeObject): unknown {
  const kept = Object.entries(object.metadata).filter(([name]) => !isOwn(object, name));
  return sorted({ ...object, apiVersion: undefined, metadata: Object.fromEntries(kept) });
}

/**
 * Texts that two runs of the same controller may tell differently. Whether a Deployment's status comes between the
 * creation of a ReplicaSet and its first Pods, and so whether progress is seen in them, is a matter of milliseconds;
 * Pods that were refused have a name all the same.
 */
const chances: [RegExp, string][] = [
  [/^True (?:NewReplicaSetCreated|ReplicaSetUpdated)$/, "True <on its way>"],
  [/^(?:NewReplicaSetCreated|ReplicaSetUpdated)$/, "<on its way>"],
  [
    /^(?:Created new replica set ("[^"]+")|ReplicaSet ("[^"]+") is progressing\.)$/,
    "<on its way> $1$2",
  ],
  [/(pods "[a-z0-9-]+-)[a-z0-9]{5}"/g, '$1<refused>"'],
  [/^\(combined from similar events\): (?=Error)/, ""],
];

function alike(text: string): string {
  return chances.reduce((left, [pattern, shown]) => left.replace(pattern, shown), text);
}

function withoutRepeats(values: string[]): string[] {
  return values.filter((value, index) => value !== values[index - 1]);
}

/** Lists whose order means nothing are sorted; so are the fields of objects. */
function sorted(value: unknown, key = ""): unknown {
  if (Array.isArray(value)) {
    const list = value.map((each) => sorted(each));
    if (!["conditions", "endpoints", "ports", "active"].includes(key)) return list;
    return list.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  }
  if (typeof value === "string") return alike(value);
  if (typeof value !== "object" || value === null) return value;
  const known = Object.entries(value).filter(([name]) => name !== "resourceVersion");
  const entries = known.sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, each]) => [name, sorted(each, name)]));
}
