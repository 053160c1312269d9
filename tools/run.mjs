// The project's own commands: `npm test`, `npm run check`, ... See package.json.
import { spawnSync } from "node:child_process";
import path from "node:path";
import { ensureInstalled, environment, node24, root } from "./node.mjs";

ensureInstalled();
const [command, ...rest] = process.argv.slice(2);
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
  // What they are about is the runtimes: the same on both.
  ...(process.env.SPRY_TEST_LONG ? ["samples", "examples"] : []),
].map((name) => `test/e2e/${name}.test.ts`);

const lint = [[...oxfmt, "--check"], oxlint, [...tsc, "-p", "."]];

const steps = {
  test: [[...vitest, "--project=!cluster", "--project=!differential", ...rest]],
  unit: [[...vitest, "--project", "unit", ...rest]],
  e2e: [[...vitest, "--project", "e2e", ...rest]],
  journeys: [[...vitest, "--project", "e2e", ...onBothEngines, ...rest]],
  cluster: [[...vitest, "--project", "cluster", ...rest]],
  differential: [[...vitest, "--project", "differential", ...rest]],
  lint,
  check: [...lint, [...vitest, "--project", "unit", "--maxWorkers=2"]],
  format: [oxfmt, [...oxlint, "--fix"]],
  bench: [[node, path.join(root, "bench", "main.ts"), ...rest]],
  chart: [[node, path.join(root, "tools", "helm", "main.ts")]],
  images: [[node, path.join(root, "tools", "images", "main.ts"), ...rest]],
  "foreign-tools": [[node, path.join(root, "tools", "foreign-tools", "main.ts")]],
  "real-apiserver": [[node, path.join(root, "tools", "real-apiserver", "main.ts"), ...rest]],
}[command];

if (!steps) {
  console.error(`There is no command ${command}. See "scripts" in package.json.`);
  process.exit(2);
}
const env = environment();
delete env.NODE_EXTRA_CA_CERTS;
for (const [file, ...args] of steps) {
  const { status } = spawnSync(file, args, { cwd: root, stdio: "inherit", env });
  if (status !== 0) process.exit(status ?? 1);
}
