/**
 * Signals are sent, and programs that stay are started, in one place each (`packages/kube/src/processes`): a number that is not a process's
 * would reach the sender's own group, and a program that could not be started would be process 0.
 */
import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const root = path.resolve(import.meta.dirname, "..");
const own = "packages/kube/src/processes";

const sources = globSync(["packages/*/{src,bin}/**/*.{ts,tsx,mjs}", "runtimes/*/src/**/*.ts"], {
  cwd: root,
}).filter((file) => !/\.test\.ts$|\/testing(?:\/|\.ts)/.test(file));

interface Rule {
  what: string;
  pattern: RegExp;
  instead: string;
  /** File → why it may. */
  allowed: Record<string, string>;
}

const rules: Rule[] = [
  {
    what: "signals",
    pattern: /(?<![.\w])process\.kill\(/,
    instead: "signalProcess, signalGroup or signalIdentity of @spry/kube",
    allowed: {
      [`${own}/signals.ts`]: "the place",
      "packages/cli/bin/spry.mjs": "ends itself; runs on Node.js 20, before anything is installed",
      "packages/cli/src/launcher.ts": "ends itself; part of every start, which loads no other room",
      "packages/machine/src/node/container-stop.ts": "`process` is a container there",
      "packages/machine/src/sandbox/confinement/start-file.ts":
        "the text of a program that runs in a container, and ends itself",
      "runtimes/nodejs/src/watchdog.ts": "part of an image, which has no other room",
      "runtimes/nodejs/src/image/compile-runtime.ts": "ends itself, in an image's build",
    },
  },
  {
    what: "starts of programs",
    pattern: /\bimport \{[^}]*\b(?:spawn|fork)\b[^}]*\} from "node:child_process"/,
    instead: "startProgram or tryProgram of @spry/kube",
    allowed: {
      [`${own}/start-program.ts`]: "the place",
      "packages/cli/bin/spry.mjs": "runs on Node.js 20, before anything is installed",
      "packages/image/src/builder/installer.ts":
        "part of the builder's image; looks at the number first",
      "runtimes/nodejs/src/watchdog.ts": "part of an image, which has no other room",
      "runtimes/nodejs/src/application/main-program.ts":
        "part of an image, which has no other room; signals its child by the object",
    },
  },
  {
    what: "stand-ins for the number of a process",
    pattern: /\bpid \?\? /,
    instead: "an error where there is none",
    allowed: {},
  },
];

test.each(rules)("$what", ({ pattern, instead, allowed }) => {
  const found = sources.filter((file) => pattern.test(readFileSync(path.join(root, file), "utf8")));
  const wrong = found.filter((file) => !(file in allowed));
  expect(wrong, `use ${instead}`).toEqual([]);
  // A reason that nothing needs any more goes.
  expect(Object.keys(allowed).filter((file) => !found.includes(file))).toEqual([]);
});
