import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, expect, test } from "vitest";
import { importFile } from "./import-file.ts";

let home = "";
afterEach(() => rmSync(home, { recursive: true, force: true }));

function imported(name: string, text: string) {
  home = mkdtempSync(path.join(tmpdir(), "spry-import-"));
  writeFileSync(path.join(home, name), text);
  return importFile(path.join(home, name)).map(({ config, remarks }) => ({ config, remarks }));
}

test("func.yaml: each setting without a counterpart is named", () => {
  const [found] = imported(
    "func.yaml",
    `specVersion: 0.36.0
name: orders
runtime: node
build: { buildEnvs: [{ name: X, value: y }] }
run:
  envs: [{ name: KEY, value: "{{ secret:sec:A }}" }, { name: HERE, value: "{{ env:HOME }}" }]
deploy: { options: { scale: { max: 4 }, resources: { limits: { memory: 256Mi } } } }
`,
  );
  expect(found).toEqual({
    config: {
      name: "orders",
      runtime: "nodejs24",
      env: { KEY: { secret: "sec", key: "A" }, HERE: "" },
      scale: { max: 4 },
    },
    remarks: [
      "the variable HERE has this machine's HOME at each deployment: write its value, or a Secret",
      "variables of the build are not used",
      "resources are not used: choose a profile in spry.yaml, such as `profile: M`",
    ],
  });
});

test("stack.yml: what the cron connector calls has a schedule, other topics are named", () => {
  const found = imported(
    "stack.yml",
    `functions:
  clean:
    lang: python3-http
    annotations: { topic: cron-function, schedule: "*/5 * * * *" }
  paid:
    lang: node20
    limits: { memory: 128Mi }
    annotations: { topic: payments, owner: shop }
`,
  );
  expect(found).toEqual([
    {
      config: {
        name: "clean",
        runtime: "python312",
        schedules: [{ name: "cron", cron: "*/5 * * * *" }],
      },
      remarks: [],
    },
    {
      config: { name: "paid", runtime: "nodejs24", annotations: { owner: "shop" } },
      remarks: [
        "resources are not used: choose a profile in spry.yaml, such as `profile: M`",
        "the topic payments has no counterpart: subscribe with a Subscription",
      ],
    },
  ]);
});

test.each([
  [
    "func.yaml",
    "specVersion: 0.36.0\nrun:\n  envs:\n    - name: A\n      value: 1.10\n    - { name: B, value: 00123 }\n",
  ],
  ["stack.yml", "functions:\n  one:\n    lang: node\n    environment: { A: 1.10, B: 00123 }\n"],
  [
    "config.yaml",
    "name: a\nruntime: nodejs24\nsource: { sourceType: inline }\nenv: [{ name: A, value: 1.10 }, { name: B, value: 00123 }]\n",
  ],
])("%s: a number in a variable is text as it is written", (name, text) => {
  expect(imported(name, text)[0]?.config.env).toEqual({ A: "1.10", B: "00123" });
});
