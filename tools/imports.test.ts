/**
 * The house's layering, as a table: which room may import which, and why each production dependency
 * is there. A line that is not in the table fails here, with the file that wants it.
 */
import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";

const root = path.resolve(import.meta.dirname, "..");

interface Room {
  rooms: string[];
  dependencies: Record<string, string>;
}

const table: Record<string, Room> = {
  "packages/kube": {
    rooms: [],
    dependencies: {
      "js-yaml": "kubeconfig files and manifests are YAML",
    },
  },
  "packages/function": { rooms: ["@spry/kube"], dependencies: {} },
  // Which addresses are called for tenants.
  "packages/image": {
    rooms: ["@spry/kube", "@spry/function"],
    dependencies: {
      "es-module-lexer":
        "where the imports of compiled TypeScript are: names of types are taken out",
    },
  },
  "packages/apiserver": {
    rooms: ["@spry/kube"],
    dependencies: {
      "@marcbachmann/cel-js": "CEL rules of CustomResourceDefinitions and webhooks",
      jose: "ServiceAccount tokens are signed JSON Web Tokens",
      re2js: "patterns are Go's and written by users: the same syntax, and linear time",
      ws: "exec, attach and port-forward arrive as WebSockets",
    },
  },
  "packages/machine": {
    rooms: ["@spry/kube", "@spry/image"],
    dependencies: { croner: "when a CronJob is due: cron expressions, time zones, summer time" },
  },
  // The clock: when a reference is asked for again; and what an address is.
  "packages/source": { rooms: ["@spry/kube"], dependencies: {} },
  "packages/controller": {
    rooms: ["@spry/kube", "@spry/function", "@spry/source"],
    dependencies: {},
  },
  "packages/gateway": {
    rooms: ["@spry/kube", "@spry/function", "@spry/exposure"],
    dependencies: { undici: "the proxy hop: a quarter more requests than node:http's agent" },
  },
  // Its tests of tokens, hosts and paths are pure, and the gateway's: docs/adr/0020.
  "packages/exposure": {
    rooms: ["@spry/kube", "@spry/function"],
    dependencies: {
      re2js:
        "paths and origins may be regular expressions of users: the original's syntax, and linear time",
    },
  },
  // Delivery is the gateway's attempt: docs/adr/0022.
  "packages/eventing": {
    rooms: ["@spry/kube", "@spry/function", "@spry/gateway", "@spry/queue"],
    dependencies: { croner: "when a schedule is due: cron expressions, time zones, summer time" },
  },
  // Loggers and clocks. What keeps messages knows nothing of events.
  "packages/queue": {
    rooms: ["@spry/kube"],
    dependencies: {
      "@nats-io/jetstream":
        "streams and consumers of NATS servers, where the queue is in a cluster",
      "@nats-io/transport-node": "connections to NATS servers",
    },
  },
  "packages/serving": { rooms: ["@spry/kube", "@spry/function"], dependencies: {} },
  "packages/dashboard": {
    rooms: ["@spry/kube", "@spry/function"],
    dependencies: {
      "@codemirror/autocomplete": "the editor's completion",
      "@codemirror/commands": "the editor's keys and its undo",
      "@codemirror/lang-javascript": "the editor's JavaScript and TypeScript",
      "@codemirror/lang-json": "the editor's package.json",
      "@codemirror/lang-python": "the editor's Python",
      "@codemirror/lang-yaml": "the editor's YAML",
      "@codemirror/language": "what the editor's languages are made of",
      "@codemirror/lint": "errors where they are in the code",
      "@codemirror/search": "search and replace in the editor",
      "@codemirror/state": "the editor: a sixth of the size of the other one in use",
      "@codemirror/view": "the editor",
      "@lezer/highlight": "the editor's colours, in both themes",
      "@preact/signals": "state that views follow without a list of who reads what",
      croner: "when a schedule is due next, as the scheduler computes it; loaded with its views",
      diff: "what a change changes, line by line, before it is applied",
      esbuild: "bundles the page",
      preact: "views in TSX, in 5 KiB",
      uplot: "metrics drawn, in 22 KiB",
      ws: "one WebSocket a tab carries watches and logs",
    },
  },
  "packages/cli": {
    rooms: [
      "@spry/kube",
      "@spry/function",
      "@spry/image",
      "@spry/apiserver",
      "@spry/machine",
      "@spry/controller",
      "@spry/dashboard",
      "@spry/exposure",
      "@spry/eventing",
      "@spry/gateway",
      "@spry/queue",
      "@spry/serving",
      "@spry/source",
      "@spry/runtime-nodejs",
    ],
    dependencies: {
      "@peculiar/x509": "issues the platform's certificates",
      "reflect-metadata": "@peculiar/x509 needs it and does not bring it",
      commander: "commands, options and their help",
      esbuild: "bundles the builder and the source fetcher into the single files that start fast",
      "js-yaml": "manifests and kubeconfig are YAML",
      "modern-tar": "writes and reads the archives of backups",
      npm: "installs a Function's dependencies, the same version everywhere",
      pino: "structured logs",
      semver: "package.json says with ranges of npm which Node.js it wants",
      ws: "ports of Pods are forwarded over WebSockets",
    },
  },
  "runtimes/nodejs": {
    rooms: [],
    dependencies: { esbuild: "bundles the runtime into the single file that starts fast" },
  },
};

/** Every `from "x"`, `import "x"` and `import("x")` of a file, as it is written. */
function importsOf(file: string): string[] {
  const text = readFileSync(file, "utf8");
  const statement = /^\s*(?:import|export)\s[^;"]*?\bfrom\s*"([^"\n]+)"|^\s*import\s*"([^"\n]+)"/gm;
  const call = /\bimport\(\s*"([^"\n]+)"/g;
  return [...text.matchAll(statement), ...text.matchAll(call)].flatMap(
    (match) => match[1] ?? match[2] ?? [],
  );
}

function packageOf(specifier: string): string {
  const parts = specifier.split("/");
  return specifier.startsWith("@") ? parts.slice(0, 2).join("/") : (parts[0] ?? specifier);
}

/** A room's faces, behind its name: the whole one, the part of it that runs in a browser, and what a page loads later. */
const faces = new Set(["", "/browser", "/templates", "/yaml"]);

/** Type-only packages: erased before anything runs. */
const typeOnly = new Set(["kubernetes-types"]);

const productionFiles = (room: string) =>
  globSync(`${room}/src/**/*.{ts,tsx}`, { cwd: root }).filter(
    (file) => !/(\.test|\/testing)\.tsx?$/.test(file) && !file.includes("/testing/"),
  );

test("the table knows every room", () => {
  const rooms = globSync(["packages/*/package.json", "runtimes/*/package.json"], { cwd: root });
  expect(rooms.map((file) => path.dirname(file)).sort()).toEqual(Object.keys(table).sort());
});

describe.each(Object.entries(table))("%s", (room, { rooms, dependencies }) => {
  test("imports only what the table allows", () => {
    const allowed = new Set([...rooms, ...Object.keys(dependencies), ...typeOnly]);
    const wrong = productionFiles(room).flatMap((file) =>
      importsOf(path.join(root, file))
        .filter((name) => !name.startsWith(".") && !name.startsWith("node:"))
        .filter(
          (name) =>
            !allowed.has(packageOf(name)) ||
            (name.startsWith("@spry/") && !faces.has(name.slice(packageOf(name).length))),
        )
        .map((name) => `${file} imports ${name}`),
    );
    expect(wrong).toEqual([]);
  });

  test("stays inside its own folder with relative imports", () => {
    const wrong = productionFiles(room).flatMap((file) =>
      importsOf(path.join(root, file))
        .filter((name) => name.startsWith("."))
        .filter((name) => !path.join(path.dirname(file), name).startsWith(`${room}/`))
        .map((name) => `${file} imports ${name}`),
    );
    expect(wrong).toEqual([]);
  });

  test("imports every dependency that it declares", () => {
    // npm is run, not imported; reflect-metadata and esbuild are asked for where they are needed.
    const used = new Set(
      productionFiles(room).flatMap((file) => {
        const text = readFileSync(path.join(root, file), "utf8");
        return Object.keys(dependencies).filter((name) => text.includes(`"${name}`));
      }),
    );
    expect(Object.keys(dependencies).filter((name) => !used.has(name))).toEqual([]);
  });

  test("declares exactly the dependencies of the table, in exact versions", () => {
    const manifest = JSON.parse(readFileSync(path.join(root, room, "package.json"), "utf8")) as {
      dependencies?: Record<string, string>;
    };
    const declared = manifest.dependencies ?? {};
    expect(Object.keys(declared).sort()).toEqual([...rooms, ...Object.keys(dependencies)].sort());
    const loose = Object.entries(declared).filter(
      ([, version]) => !/^\d+\.\d+\.\d+$/.test(version),
    );
    expect(loose).toEqual([]);
  });
});

/** Files that tests and tools need and no face has, with the reason. The command is wired here alone: it has no face. */
const withoutFace: [file: string, reason: string][] = [
  ["packages/cli/", "it puts the rooms together, and no room imports it"],
  ["packages/machine/src/network/cluster-view.ts", "a policy agent of the tests enforces it"],
  ["packages/machine/src/network/pods/policy-rules.ts", "the same"],
  ["packages/machine/src/network/pods/nft-tables.ts", "the same"],
  ["packages/machine/src/network/pods/commands.ts", "where the machine's programs are"],
];

test("tests, tools and benchmarks use the rooms' faces, and what rooms have for tests", () => {
  const outside = globSync(["{test,tools,bench}/**/*.{ts,mjs}"], { cwd: root });
  const inside = globSync("{packages,runtimes}/*/src/**/*.{ts,tsx}", { cwd: root });
  const roomOf = (file: string) => /^(?:packages|runtimes)\/[^/]+\//.exec(file)?.[0];
  const allowed = new Set([...faces, "/testing"]);
  const wrong = [...outside, ...inside].flatMap((file) =>
    importsOf(path.join(root, file))
      .filter((name) => {
        if (name.startsWith("@spry/")) return !allowed.has(name.slice(packageOf(name).length));
        if (!name.startsWith(".")) return false;
        const target = path.join(path.dirname(file), name);
        const room = roomOf(target);
        if (!room || room === roomOf(file) || target.startsWith(`${room}src/testing/`))
          return false;
        return !withoutFace.some(([each]) => target.startsWith(each));
      })
      .map((name) => `${file} imports ${name}`),
  );
  expect(wrong).toEqual([]);
});
