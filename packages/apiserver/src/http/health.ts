import { type Engine } from "../engine.ts";
import { HttpResponse } from "./message.ts";

/** One thing that must be in order; names are those that monitors of a cluster know. */
interface Check {
  name: string;
  /** Only asked by `/readyz`: a server that ends is alive. */
  readinessOnly?: boolean;
  isGood(engine: Engine): boolean;
}

const always = () => true;
const checks: Check[] = [
  { name: "ping", isGood: always },
  { name: "log", isGood: always },
  // The store, by the name of what a cluster keeps its objects in: one that is damaged is not opened.
  { name: "etcd", isGood: always },
  { name: "poststarthook/crd-informer-synced", isGood: always },
  { name: "poststarthook/rbac/bootstrap-roles", isGood: always },
  { name: "poststarthook/scheduling/bootstrap-system-priority-classes", isGood: always },
  { name: "shutdown", readinessOnly: true, isGood: ({ closing }) => !closing.aborted },
];

/**
 * `/healthz`, `/livez`, `/readyz` with `?verbose` and `?exclude=<check>`, and one check alone below each
 * (`k8s.io/apiserver/pkg/server/healthz`); undefined for other paths.
 */
export function healthResponse(engine: Engine, { pathname, searchParams }: URL) {
  const [, endpoint = "", name] = /^\/(healthz|livez|readyz)(?:\/(.+))?$/.exec(pathname) ?? [];
  if (endpoint === "") return undefined;
  const asked = checks.filter((each) => endpoint === "readyz" || !each.readinessOnly);
  if (name !== undefined) {
    const one = asked.find((each) => each.name === name);
    if (!one) return undefined;
    const isGood = one.isGood(engine);
    return text(isGood ? "ok" : "internal server error: reason withheld\n", isGood);
  }
  const excluded = new Set(searchParams.getAll("exclude"));
  const lines = asked.map((each) => {
    const isExcluded = excluded.delete(each.name);
    if (isExcluded) return `[+]${each.name} excluded: ok\n`;
    return each.isGood(engine)
      ? `[+]${each.name} ok\n`
      : `[-]${each.name} failed: reason withheld\n`;
  });
  if (lines.some((line) => line.startsWith("[-]")))
    return text(`${lines.join("")}${endpoint} check failed\n`, false);
  if (!searchParams.has("verbose")) return text("ok", true);
  const unknown = [...excluded].map((each) => JSON.stringify(each)).join(", ");
  const warning = unknown
    ? `warn: some health checks cannot be excluded: no matches for ${unknown}\n`
    : "";
  return text(`${lines.join("")}${warning}${endpoint} check passed\n`, true);
}

function text(body: string, isGood: boolean): HttpResponse {
  const headers = {
    "content-type": "text/plain; charset=utf-8",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache, private",
  };
  return new HttpResponse(body, { status: isGood ? 200 : 500, headers });
}
