// The project's own commands: `npm test`, `npm run check`, ... See package.json.
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { ensureInstalled, environment, node24, root } from "../packages/cli/bin/node.mjs";
import { runFull, runGate } from "./suites.mjs";

ensureInstalled();
const [command, ...rest] = process.argv.slice(2);
if (command === "gate") process.exit(await runGate());
if (command === "full") process.exit(await runFull(rest));
const node = node24();
const module = (name, file) => [node, path.join(root, "node_modules", name, file)];
const vitest = [...module("vitest", "vitest.mjs"), "run"];
const oxlint = [...module("oxlint", "bin/oxlint"), "--type-aware", "--deny-warnings"];
const oxfmt = module("oxfmt", "bin/oxfmt");
const tsc = module("typescript", "bin/tsc");

/** What a person does with Functions is the same on a cluster. */
const onBothEngines = [
  "journey",
  "mistakes",
  "scenarios",
  "git",
  "python",
  "deploy",
  // What they are about is the runtimes: the same on both.
  ...(process.env.SPRY_TEST_FULL ? ["samples.full", "examples", "python.full"] : []),
].map((name) => `test/e2e/${name}.test.ts`);

/** What has not changed since the last time is not checked again. */
const types = [
  "-p",
  ".",
  "--incremental",
  "--tsBuildInfoFile",
  "node_modules/.cache/types.tsbuildinfo",
];
const lint = [[...oxfmt, "--check"], oxlint, [...tsc, ...types]];

const steps = {
  test: [[...vitest, "--project=!cluster", "--project=!differential", ...rest]],
  unit: [[...vitest, "--project", "unit", ...rest]],
  e2e: [[...vitest, "--project", "e2e", ...rest]],
  journeys: [[...vitest, "--project", "e2e", ...onBothEngines, ...rest]],
  cluster: [[...vitest, "--project", "cluster", ...rest]],
  differential: [[...vitest, "--project", "differential", ...rest]],
  attacks: [[...vitest, "--project", "attacks", ...rest]],
  "foreign-tools-tests": [
    [...vitest, "--project", "conformance", "test/conformance/tools", ...rest],
  ],
  "conformance-knative": [
    [
      ...vitest,
      "--project",
      "conformance",
      "test/conformance/tools/knative.full.test.ts",
      "test/conformance/tools/knative-cluster.full.test.ts",
      ...rest,
    ],
  ],
  lint,
  check: [[...vitest, "--project", "unit", ...rest]],
  format: [oxfmt, [...oxlint, "--fix"]],
  bench: [[node, path.join(root, "bench", "main.ts"), ...rest]],
  chart: [[node, path.join(root, "tools", "helm", "main.ts")]],
  images: [[node, path.join(root, "tools", "images", "main.ts"), ...rest]],
  reference: [[node, path.join(root, "tools", "reference", "main.ts")]],
  package: [[node, path.join(root, "tools", "package", "main.ts"), ...rest]],
  "foreign-tools": [[node, path.join(root, "tools", "foreign-tools", "main.ts")]],
  "real-apiserver": [[node, path.join(root, "tools", "real-apiserver", "main.ts"), ...rest]],
}[command];

if (!steps) {
  console.error(`There is no command ${command}. See "scripts" in package.json.`);
  process.exit(2);
}
const env = environment();
delete env.NODE_EXTRA_CA_CERTS;
// Of programs that tests start again and again, from their sources: what has been compiled once is kept.
env.NODE_COMPILE_CACHE ??= path.join(root, "node_modules", ".cache", "node");
// All of those tests need programs that only the full suite builds.
if (["foreign-tools-tests", "conformance-knative"].includes(command)) env.SPRY_TEST_FULL = "1";
// Programs that tests start as `node` run on the same one.
env.PATH = `${path.dirname(node)}${path.delimiter}${env.PATH ?? ""}`;
// The unit tests leave processors idle now and then: what they find and what lint finds are both reported, lint's last.
const lintOutput = [];
const checking = command === "check" ? run(lint, lintOutput) : 0;
const status = await run(steps);
const lintStatus = await checking;
process.stdout.write(Buffer.concat(lintOutput));
if (status === 0 && lintStatus !== 0) console.error("The tests passed; what failed is above.");
process.exitCode = status || lintStatus;

/** Runs commands up to the first that fails; resolves with its exit code, or 0. `output` gets what they print, else the terminal. */
async function run(commands, output) {
  for (const [file, ...args] of commands) {
    const stdio = output ? ["ignore", "pipe", "pipe"] : "inherit";
    const child = spawn(file, args, { cwd: root, stdio, env });
    for (const stream of [child.stdout, child.stderr])
      stream?.on("data", (chunk) => output.push(chunk));
    const [code] = await once(child, "close");
    if (code !== 0) return code ?? 1;
  }
  return 0;
}
