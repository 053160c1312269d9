import { useState } from "preact/hooks";
import { resources } from "@spry/kube/browser";
import { useLive } from "../api/live.ts";

const system = /^(?:kube|kyma|istio|spry)-|^knative-/;
const otherValue = "\u0000other";

/** A choice of namespace. Users who may not list namespaces type a name. */
export function NamespaceChoice({
  value,
  hasAll = false,
  hasSystem = true,
  onChange,
  id,
}: {
  value: string | undefined;
  /** Whether all namespaces together, `undefined`, can be chosen. */
  hasAll?: boolean;
  /** Whether those of Kubernetes and of the platform are offered. */
  hasSystem?: boolean;
  onChange: (namespace: string | undefined) => void;
  id?: string;
}) {
  const { items, isReady, problem } = useLive(resources.namespaces);
  const [isTyping, setTyping] = useState(false);
  const label = id === undefined ? { "aria-label": "Namespace" } : { id };
  if (isTyping || (problem.value && !isReady.value)) {
    return (
      <input
        {...label}
        placeholder="Namespace"
        value={value ?? ""}
        onChange={({ currentTarget }) => onChange(currentTarget.value.trim() || undefined)}
      />
    );
  }
  const names = items.value
    .map(({ metadata }) => metadata.name ?? "")
    .filter((name) => hasSystem || !system.test(name));
  if (value !== undefined && !names.includes(value)) names.push(value);
  return (
    <select
      {...label}
      value={value ?? ""}
      onChange={({ currentTarget }) => {
        if (currentTarget.value === otherValue) setTyping(true);
        else onChange(currentTarget.value || undefined);
      }}
    >
      {hasAll && <option value="">All namespaces</option>}
      {names.sort().map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
      <option value={otherValue}>Another …</option>
    </select>
  );
}
