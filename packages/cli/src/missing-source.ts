/** What makes the Secret or the ConfigMap that a Function's variables come from. */
import { type Function } from "@spry/function";
import { inNamespace } from "./shown-namespace.ts";

/** A kubelet's words for one that does not exist, and for one without the key. */
const missing =
  /: CreateContainerConfigError: (?:(secret|configmap) "([^"]+)" not found|couldn't find key (\S+) in (Secret|ConfigMap) [^/\s]+\/(\S+))/;

/** The way out of a condition's message, in one sentence; none where it is about something else. */
export function missingSource(
  message: string,
  { spec, namespace }: Pick<Function, "spec"> & { namespace: string },
): string[] {
  const [, kind, absent, key, kindOfKey, without] = missing.exec(message) ?? [];
  const name = absent ?? without;
  if (name === undefined) return [];
  const isSecret = (kind ?? kindOfKey)?.toLowerCase() === "secret";
  const references = (spec.env ?? []).flatMap(({ valueFrom }) => {
    const reference = isSecret ? valueFrom?.secretKeyRef : valueFrom?.configMapKeyRef;
    return reference?.name === name ? (reference.key ?? []) : [];
  });
  const keys = [...new Set(key === undefined ? references : [key])];
  const target = inNamespace(namespace);
  if (isSecret) {
    const values = (keys.length > 0 ? keys : ["KEY"]).map((each) => `${each}=VALUE`).join(" ");
    return [
      `spry secrets set ${name} ${values}${target} ${key === undefined ? "makes it" : "adds it"}`,
    ];
  }
  const values = keys.map((each) => ` --from-literal=${each}=VALUE`).join("");
  if (key === undefined) return [`kubectl create configmap ${name}${values}${target} makes it`];
  const data = JSON.stringify({ data: { [key]: "VALUE" } });
  return [`kubectl patch configmap ${name}${target} -p '${data}' adds it`];
}
