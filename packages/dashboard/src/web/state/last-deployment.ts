/** When Functions of a list were deployed last: asked for the rows in view only, because each has several versions. */
import { signal } from "@preact/signals";
import { type Function, labels } from "@spry/function/browser";
import { useEffect } from "preact/hooks";
import { asUser } from "../api/client.ts";
import { fitted } from "./shape.ts";

const accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const shape = { "items!": [{ "metadata!": { creationTimestamp: "text" } }] } as const;
const maxAtOnce = 4;
/** A row that is scrolled past is not asked for. */
const restMs = 150;
const maxKnown = 2_000;

const known = signal<ReadonlyMap<string, string>>(new Map());
const waiting = new Map<string, Function>();
let running = 0;

/** RFC 3339; empty as long as it is not known, or for users who may not see it. */
export function useLastDeployment(fn: Function): string {
  // Of each version of its status, once.
  const key = `${fn.metadata.uid} ${fn.status?.revision ?? 0}`;
  useEffect(() => {
    if (known.value.has(key) || fn.status?.revision === undefined) return undefined;
    const timer = setTimeout(() => {
      waiting.set(key, fn);
      next();
    }, restMs);
    return () => {
      clearTimeout(timer);
      waiting.delete(key);
    };
  }, [key]);
  return known.value.get(key) ?? "";
}

function next(): void {
  const [first] = waiting;
  if (!first || running >= maxAtOnce) return;
  const [key, fn] = first;
  waiting.delete(key);
  running++;
  void answer(key, fn);
  next();
}

async function answer(key: string, fn: Function): Promise<void> {
  const time = await read(fn).catch(() => "");
  running--;
  known.value = new Map([...[...known.value].slice(-maxKnown), [key, time]]);
  next();
}

async function read({ metadata }: Function): Promise<string> {
  const { namespace = "", name = "" } = metadata;
  const path = `/k8s/apis/apps/v1/namespaces/${encodeURIComponent(namespace)}/controllerrevisions`;
  const selector = encodeURIComponent(`${labels.functionName}=${name}`);
  const response = await asUser(`${path}?labelSelector=${selector}`, { headers: { accept } });
  if (!response.ok) return "";
  const { items } = fitted<{ items: { metadata: { creationTimestamp?: string } }[] }>(
    shape,
    await response.json(),
  );
  return (
    items
      .map((each) => each.metadata.creationTimestamp ?? "")
      .sort()
      .at(-1) ?? ""
  );
}
