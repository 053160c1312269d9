// What is run before a change lands (the gate) and before a release (the full suite), part by part. Each part runs to
// its end, or to its time limit, whatever the others did; one table and a last line with the sum report how it went.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import path from "node:path";
import { root } from "../packages/cli/bin/node.mjs";

const cache = process.env.XDG_CACHE_HOME || path.join(homedir(), ".cache");
const helm = path.join(cache, "spry", "helm", "helm");
const isThere = (program) => spawnSync(program, ["version"], { stdio: "ignore" }).status === 0;
const noGo = () => (isThere("go") ? undefined : "Go is not installed");

const defaultMinutes = 60;
const npm = (script, ...args) => ({ command: ["npm", "run", "--silent", script, "--", ...args] });
const tests = (script, ...args) => ({ ...npm(script, ...args), isCounted: true });
const realCluster = npm("real-apiserver", "build", "--node");

/**
 * A part is npm commands, one after the other; `tests` writes a report that is counted. `env` is added to the environment, and
 * `lack` says why the part cannot run on this machine. `minutes` is the time limit of all its steps: it only ends what would
 * never end.
 */
export const parts = {
  lint: { steps: [npm("lint")] },
  product: { steps: [tests("test")], minutes: 120 },
  differential: { steps: [realCluster, tests("test:differential")], lack: noGo },
  cluster: { steps: [realCluster, tests("test:cluster")], lack: noGo, minutes: 120 },
  journeys: {
    steps: [realCluster, tests("test:journeys")],
    env: { SPRY_TEST_ENGINE: "cluster" },
    lack: noGo,
  },
  "foreign-tools": {
    steps: [
      npm("foreign-tools"),
      // Knative's own tests run on a cluster, too.
      realCluster,
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
    // Its programs are built from their sources where they are not cached.
    minutes: 240,
  },
  attacks: { steps: [tests("test:attacks")], minutes: 120 },
  soak: { steps: [npm("bench", "soak")], minutes: 180 },
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

/** Runs the gate; resolves with the exit code. */
export const runGate = () => run(gate, process.env);

/** Runs the full suite, or the parts that are named; resolves with the exit code. */
export async function runFull(names) {
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

async function run(selected, environment) {
  const reports = mkdtempSync(path.join(tmpdir(), "spry-reports-"));
  const rows = [];
  for (const [name, part] of Object.entries(selected)) {
    const begin = performance.now();
    const lack = part.lack?.();
    const outcome = lack
      ? { passed: 0, failed: 0, skipped: 1, note: `skipped: ${lack}` }
      : await runPart(name, part);
    rows.push({ name, ...outcome, seconds: (performance.now() - begin) / 1000 });
  }
  rmSync(reports, { recursive: true, force: true });

  async function runPart(name, { steps, env = {}, minutes = defaultMinutes }) {
    const counts = { passed: 0, failed: 0, skipped: 0 };
    const deadline = performance.now() + minutes * 60_000;
    let note;
    for (const [index, { command, isCounted }] of steps.entries()) {
      const report = path.join(reports, `${name.replaceAll(" ", "-")}-${index}.json`);
      const [program, ...args] = command;
      if (isCounted)
        args.push("--reporter=default", "--reporter=json", `--outputFile.json=${report}`);
      console.log(`\n== ${name}: ${command.join(" ")}`);
      const { status, signal, error, isLate } = await runInGroup([program, ...args], deadline, {
        cwd: root,
        env: { ...environment, ...env },
      });
      if (isLate) note = `exceeded its time limit (${minutes} min)`;
      else if (error) note = `could not be started: ${error.message}`;
      else if (signal) note = `ended by ${signal}`;
      const counted = isCounted ? countOf(report) : undefined;
      if (counted) for (const key of Object.keys(counts)) counts[key] += counted[key];
      // A step that failed without a failed test: it could not run at all.
      if (status !== 0 && !counted?.failed) counts.failed++;
      if (status !== 0) break;
    }
    return { ...counts, note };
  }

  return summary(rows);
}

/**
 * Runs a command as a process group of its own, which ends as a whole at the deadline, and with this program: neither a
 * hanging part nor Ctrl-C leaves platforms behind.
 */
function runInGroup([program, ...args], deadline, options) {
  // Node.js 20 runs this file: no Promise.withResolvers.
  let resolve;
  const promise = new Promise((settle) => (resolve = settle));
  const child = spawn(program, args, {
    ...options,
    detached: true,
    stdio: ["ignore", "inherit", "inherit"],
  });
  let isLate = false;
  const end = (signal) => {
    try {
      process.kill(-child.pid, signal);
    } catch {
      // It has ended.
    }
  };
  const timer = setTimeout(
    () => {
      isLate = true;
      end("SIGTERM");
      setTimeout(() => end("SIGKILL"), 30_000).unref();
    },
    Math.max(0, deadline - performance.now()),
  );
  const stop = () => {
    end("SIGTERM");
    process.exit(130);
  };
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, stop);
  const done = (outcome) => {
    clearTimeout(timer);
    for (const signal of ["SIGINT", "SIGTERM"]) process.off(signal, stop);
    resolve({ isLate, ...outcome });
  };
  child.on("error", (error) => done({ status: null, error }));
  child.on("exit", (status, signal) => done({ status, signal }));
  return promise;
}

/** What the runner has written; undefined when it ended before or while it wrote. A file that cannot be loaded has no tests to count. */
function countOf(report) {
  if (!existsSync(report)) return undefined;
  let found;
  try {
    found = JSON.parse(readFileSync(report, "utf8"));
  } catch {
    return undefined;
  }
  return {
    passed: found.numPassedTests,
    failed: found.numFailedTests || found.numFailedTestSuites,
    skipped: found.numPendingTests + found.numTodoTests,
  };
}

function summary(rows) {
  const sum = { passed: 0, failed: 0, skipped: 0 };
  console.log(`\n${"part".padEnd(20)}  passed  failed  skipped      time`);
  for (const { name, passed, failed, skipped, seconds, note } of rows) {
    sum.passed += passed;
    sum.failed += failed;
    sum.skipped += skipped;
    const cells = [passed, failed, skipped].map((count, index) =>
      String(count).padStart(6 + (index === 2)),
    );
    const time = `${Math.round(seconds)} s`.padStart(8);
    console.log(`${name.padEnd(20)}  ${cells.join("  ")}  ${time}${note ? `  ${note}` : ""}`);
  }
  console.log(`\n${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped`);
  return sum.failed === 0 ? 0 : 1;
}
