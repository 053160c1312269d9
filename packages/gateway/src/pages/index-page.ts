/** `http://localhost:8080/`: lists the Functions for users of this machine. */
import { printable } from "../http/printable.ts";
import { type Function } from "@spry/function";
import { type Filter } from "../request/filters.ts";
import { isThisMachine } from "./by-path.ts";
import { escaped, page, pageHeaders, wantsPage } from "./html.ts";

interface Row {
  namespace: string;
  name: string;
  /** `running`, `failed` or `starting`. */
  state: string;
  /** The first line of the reason; only for a Function that does not run. */
  reason: string;
  url: string;
  /** Where `*.localhost` does not resolve. */
  path: string;
}

const maxRows = 500;
const maxReason = 200;

export const indexPage: Filter = (passage, { routes }) => {
  const { request, response, path, host, key, isPublic, isExternal } = passage;
  if (key !== "" || isPublic || !isExternal || !/^\/(?:\?|$)/.test(path)) return undefined;
  if (!isThisMachine(host) || !["GET", "HEAD"].includes(request.method ?? "")) return undefined;
  const [, port = ""] = /(:\d+)$/.exec(host) ?? [];
  const rows = routes
    .functions(maxRows)
    .map((fn) => rowOf(fn, port))
    .toSorted((a, b) => (a.path < b.path ? -1 : 1));
  const isPage = wantsPage(request);
  const isJson = !isPage && (request.headers.accept ?? "").includes("json");
  const body = isPage ? pageOf(rows) : isJson ? JSON.stringify({ functions: rows }) : textOf(rows);
  response.writeHead(200, {
    ...(isPage
      ? pageHeaders
      : { "content-type": isJson ? "application/json" : "text/plain; charset=utf-8" }),
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
  });
  response.end(request.method === "HEAD" ? undefined : body);
  return "handled";
};

function rowOf({ metadata, status }: Function, port: string): Row {
  const { name = "", namespace = "" } = metadata;
  const conditions = status?.conditions ?? [];
  const failed = conditions.find((each) => each.status === "False");
  const isRunning = conditions.some((each) => each.type === "Running" && each.status === "True");
  const [line = ""] = (failed?.message ?? "").split("\n");
  return {
    namespace,
    name,
    state: failed ? "failed" : isRunning ? "running" : "starting",
    reason: printable(line.slice(0, maxReason)),
    url: `http://${name}.${namespace}.localhost${port}/`,
    path: `/fn/${namespace}/${name}/`,
  };
}

function pageOf(rows: readonly Row[]): string {
  if (rows.length === 0)
    return page(
      "Functions",
      "<p>None yet. <code>spry init</code> and <code>spry deploy</code> create one.</p>",
    );
  const lines = rows.map(
    ({ namespace, name, state, reason, url, path }) =>
      `<tr><td><a href="${escaped(url)}">${escaped(name)}</a><td>${escaped(namespace)}` +
      `<td>${state}<td><a href="${escaped(path)}">by path</a>` +
      (reason
        ? `<td>${escaped(reason)}<br><code>spry describe ${escaped(name)} -n ${escaped(namespace)}</code>`
        : "<td>"),
  );
  const header = "<tr><th>Function<th>namespace<th>state<th><th>";
  return page("Functions", `<table>\n${header}\n${lines.join("\n")}\n</table>`);
}

const textOf = (rows: readonly Row[]): string =>
  rows.length === 0
    ? "no Functions yet\n"
    : rows
        .map(({ url, state, reason }) => `${url} ${state}${reason ? `: ${reason}` : ""}\n`)
        .join("");
