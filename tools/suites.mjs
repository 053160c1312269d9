// What is run before a change lands (the gate) and before a release (the full suite), part by part. Each part runs to
// its end whatever the others did; one table and a last line with the sum tell how it went.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import path from "node:path";
import { root } from "../packages/cli/bin/node.mjs";

const cache = process.env.XDG_CACHE_HOME || path.join(homedir(), ".cache");
const helm = path.join(cache, "spry", "helm", "helm");
const isThere = (program) => spawnSync(program, ["version"], { stdio: "ignore" }).status === 0;
const noGo = () => (isThere("go") ? undefined : "Go is not installed");

/**
 * A part is npm commands, one after the other; `tests` writes a report that is counted. `env` is added to the environment, and
 * `lack` says why the part cannot run on this machine.
 */
const npm = (script, ...args) => ({ command: ["npm", "run", "--silent", script, "--", ...args] });
const tests = (script, ...args) => ({ ...npm(script, ...args), isCounted: true });
const realCluster = npm("real-apiserver", "build", "--node");

export const parts = {
  lint: { steps: [npm("lint")] },
  product: { steps: [tests("test")] },
  differential: { steps: [realCluster, tests("test:differential")], lack: noGo },
  cluster: { steps: [realCluster, tests("test:cluster")], lack: noGo },
  journeys: {
    steps: [realCluster, tests("test:journeys")],
    env: { SPRY_TEST_ENGINE: "cluster" },
    lack: noGo,
  },
  "foreign-tools": {
    steps: [
      npm("foreign-tools"),
      ...(existsSync(helm)
        ? []
        : [
            {
              command: ["go", "build", "-C", "tools/helm", "-o", helm, "helm.sh/helm/v3/cmd/helm"],
            },
          ]),
      tests("test:foreign-tools"),
    ],
    lack: noGo,
  },
  attacks: { steps: [tests("test:attacks")] },
  soak: { steps: [npm("bench", "soak")] },
};

/** Before a change lands: a sample of what needs a real cluster, the product whole. */
const gate = {
  lint: parts.lint,
  product: parts.product,
  "differential smoke": {
    steps: [realCluster, tests("test:differential", "test/differential/differential.test.ts")],
    env: { SPRY_DIFFERENTIAL: "smoke" },
    lack: noGo,
  },
  "cluster journey": {
    steps: [realCluster, tests("test:e2e", "test/e2e/journey.test.ts")],
    env: { SPRY_TEST_ENGINE: "cluster" },
    lack: noGo,
  },
};

/** Runs the gate; returns the exit code. */
export const runGate = () => run(gate, process.env);

/** Runs the full suite, or the parts that are named; returns the exit code. */
export function runFull(names) {
  const unknown = names.filter((name) => !(name in parts));
  if (unknown.length > 0) {
    console.error(
      `The full suite has no part ${unknown.join(", ")}. Its parts are: ${Object.keys(parts).join(", ")}.`,
    );
    return 2;
  }
  const chosen = names.length > 0 ? names : Object.keys(parts);
  const selected = Object.fromEntries(chosen.map((name) => [name, parts[name]]));
  return run(selected, { ...process.env, SPRY_TEST_FULL: "1" });
}

function run(selected, environment) {
  const reports = mkdtempSync(path.join(tmpdir(), "spry-reports-"));
  const rows = [];
  for (const [name, part] of Object.entries(selected)) {
    const begin = performance.now();
    const lack = part.lack?.();
    const counts = lack ? { passed: 0, failed: 0, skipped: 1 } : runPart(name, part);
    rows.push({ name, ...counts, seconds: (performance.now() - begin) / 1000, lack });
  }
  rmSync(reports, { recursive: true, force: true });

  function runPart(name, { steps, env = {} }) {
    const counts = { passed: 0, failed: 0, skipped: 0 };
    for (const [index, { command, isCounted }] of steps.entries()) {
      const report = path.join(reports, `${name.replaceAll(" ", "-")}-${index}.json`);
      const [program, ...args] = command;
      if (isCounted)
        args.push("--reporter=default", "--reporter=json", `--outputFile.json=${report}`);
      console.log(`\n== ${name}: ${command.join(" ")}`);
      const { status } = spawnSync(program, args, {
        cwd: root,
        stdio: ["ignore", "inherit", "inherit"],
        env: { ...environment, ...env },
      });
      const counted = isCounted ? countOf(report) : undefined;
      if (counted) for (const key of Object.keys(counts)) counts[key] += counted[key];
      // A step that failed without a failed test: it could not run at all.
      if (status !== 0 && !counted?.failed) counts.failed++;
      if (status !== 0) break;
    }
    return counts;
  }

  return summary(rows);
}

/** What the runner has written; undefined when it ended before. A file that cannot be loaded has no tests to count. */
function countOf(report) {
  if (!existsSync(report)) return undefined;
  const found = JSON.parse(readFileSync(report, "utf8"));
  return {
    passed: found.numPassedTests,
    failed: found.numFailedTests || found.numFailedTestSuites,
    skipped: found.numPendingTests + found.numTodoTests,
  };
}

function summary(rows) {
  const sum = { passed: 0, failed: 0, skipped: 0 };
  console.log(`\n${"part".padEnd(20)}  passed  failed  skipped      time`);
  for (const { name, passed, failed, skipped, seconds, lack } of rows) {
    sum.passed += passed;
    sum.failed += failed;
    sum.skipped += skipped;
    const cells = [passed, failed, skipped].map((count, index) =>
      String(count).padStart(6 + (index === 2)),
    );
    const time = `${Math.round(seconds)} s`.padStart(8);
    console.log(
      `${name.padEnd(20)}  ${cells.join("  ")}  ${time}${lack ? `  skipped: ${lack}` : ""}`,
    );
  }
  console.log(`\n${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped`);
  return sum.failed === 0 ? 0 : 1;
}
