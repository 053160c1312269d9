/** What the browser loads, and what views show, tested without a browser. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type Function } from "@spry/function";
import { type Pod } from "@spry/kube";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildWeb } from "../server/build-web.ts";
import { type WebFiles } from "../server/web-files.ts";
import { chainOf } from "./state/chain.ts";
import { type Desired } from "./state/changes.ts";
import { stateOf } from "./state/function-state.ts";
import { type LogLine } from "./state/log-lines.ts";
import { LineReader } from "./state/log-lines.ts";
import { errorsIn, grouped } from "./state/last-errors.ts";
import { levelOf, printable } from "./state/log-text.ts";
import { placeIn, readable } from "./state/place-in-code.ts";
import { ratesOf, quantile } from "./state/rates.ts";
import { shared } from "./state/traffic.ts";
import { readYaml, yamlOf } from "./state/yaml.ts";
import { gunzipSync } from "node:zlib";

describe("the page's files", () => {
  const cache = mkdtempSync(path.join(tmpdir(), "web-"));
  let files: WebFiles;
  beforeAll(async () => {
    files = await buildWeb(cache);
  });
  afterAll(() => rmSync(cache, { recursive: true }));

  test("are at most 200 kB for the first load, compressed", () => {
    const page = gunzipSync(files.get("index.html")?.gzip ?? "").toString();
    const first = [...page.matchAll(/\/assets\/([\w.-]+)"/g)].map(([, name = ""]) => name);
    expect(first.length).toBeGreaterThan(2);
    const bytes = first.reduce((sum, name) => sum + (files.get(name)?.gzip.length ?? Infinity), 0);
    expect(bytes).toBeLessThan(200_000);
    // The editor, templates, charts, YAML and differences are not among them.
    const text = first.map((name) => gunzipSync(files.get(name)?.gzip ?? "").toString("latin1"));
    expect(text.join("")).not.toMatch(
      /cm-scroller|uPlot\.js|notes\.get|bad indentation of a mapping|maxEditLength/,
    );
  });

  test("name no other host, and are bundled once", async () => {
    const page = gunzipSync(files.get("index.html")?.gzip ?? "").toString();
    expect(page).not.toMatch(/https?:|<script>|<style|style=/);
    const again = await buildWeb(cache);
    expect([...again.keys()].sort()).toEqual([...files.keys()].sort());
  });
});

const condition = (type: string, status: string, reason = "X", message = "m") =>
  ({ type, status, reason, message }) as never;
const fn = (conditions: never[], more: object = {}, metadata: object = {}): Function => ({
  metadata: { name: "a", namespace: "default", generation: 1, ...metadata },
  spec: { source: { inline: { source: "x\ny\n" } } },
  status: { observedGeneration: 1, conditions, ...more },
});
const good = [
  condition("ConfigurationReady", "True"),
  condition("BuildReady", "True"),
  condition("Running", "True"),
];

describe("the last errors of an output", () => {
  const logged = (text: string, pod = "a", id = 0): LogLine => ({
    id,
    pod,
    time: "t",
    text,
    level: levelOf(text),
  });

  test("have the stacks of their own Pods, and the place in the source", () => {
    const lines = [
      logged("listening"),
      logged("calling the handler: TypeError: x is not a function"),
      logged("something else", "b"),
      logged("    at main (file:///usr/src/app/function/handler.js:3:9)"),
      logged("    at invoke (node:internal:1:1)"),
      logged("done"),
    ];
    expect(errorsIn(lines)).toEqual([
      expect.objectContaining({
        title: "calling the handler: TypeError: x is not a function",
        stack: lines
          .slice(3, 5)
          .map(({ text }) => text)
          .join("\n"),
        place: { file: "handler.js", line: 3 },
      }),
    ]);
  });

  test("that are the same are one, with their number", () => {
    const twice = [logged("TypeError: x", "a", 1), logged("fine"), logged("TypeError: x", "b", 2)];
    expect(grouped(errorsIn(twice))).toEqual([expect.objectContaining({ count: 2, id: 2 })]);
  });

  test("of Python end with the error", () => {
    const lines = [
      logged("Error while calling the handler"),
      logged("Traceback (most recent call last):"),
      logged('  File "/usr/src/app/function/handler.py", line 2, in main'),
      logged("    return 1 / 0"),
      logged("ZeroDivisionError: division by zero"),
      logged("next"),
    ];
    const [error, ...others] = errorsIn(lines);
    expect(others).toEqual([]);
    expect(error?.stack).toContain("ZeroDivisionError: division by zero");
    expect(error?.place).toEqual({ file: "handler.py", line: 2 });
  });

  test("are found in lines with levels, with their requests", () => {
    const message = "failed\n    at main (/usr/src/app/function/handler.js:7:1)";
    const lines = [
      logged(JSON.stringify({ level: "error", message, invocation: "id-1" })),
      logged("2026-01-01T00:00:00.000Z ERROR [id-2] no luck"),
    ];
    expect(errorsIn(lines)).toEqual([
      expect.objectContaining({ title: "no luck", request: "id-2", stack: "" }),
      expect.objectContaining({
        title: "failed",
        request: "id-1",
        place: { file: "handler.js", line: 7 },
      }),
    ]);
  });
});

describe("the state of a Function", () => {
  test.each<[string, Function, object]>([
    ["nothing known yet", fn([]), { word: "Initializing", tone: "busy" }],
    ["all well", fn(good), { word: "Running", tone: "good", note: "" }],
    ["a changed spec", fn(good, {}, { generation: 2 }), { word: "Updating", tone: "busy" }],
    [
      "an invalid spec",
      fn([condition("ConfigurationReady", "False")]),
      { word: "Invalid", tone: "bad" },
    ],
    [
      "a failed build while a version serves",
      fn([condition("ConfigurationReady", "True"), condition("BuildReady", "False")], {
        revision: 3,
      }),
      { word: "Build failed", tone: "bad", note: "version 3 still serves" },
    ],
    [
      "a build that is retried",
      fn([condition("BuildReady", "False")], { build: { key: "k", retryAfter: "t" } }),
      { word: "Build is retried", tone: "warn" },
    ],
    ["a deletion", fn(good, {}, { deletionTimestamp: "t" }), { word: "Being deleted" }],
    [
      "a warning",
      fn([...good.slice(0, 2), condition("Running", "True", "X", "Warning: old runtime")]),
      { word: "Running", tone: "warn", note: "Warning: old runtime" },
    ],
  ])("%s", (_, object, state) => {
    expect(stateOf(object)).toMatchObject(state);
  });

  test("the chain is red where it hangs, and has not begun behind that", () => {
    const links = chainOf(
      fn([condition("ConfigurationReady", "True"), condition("BuildReady", "False", "JobFailed")]),
      [],
    );
    expect(links.map(({ name, tone, text }) => [name, tone, text])).toEqual([
      ["Source", "good", "inline, 2 lines"],
      ["Build", "bad", "failed"],
      ["Image", "idle", "not built yet"],
      ["Deploy", "idle", "waiting"],
      ["Pods", "idle", "none"],
    ]);
  });

  test("Pods that the user may not see are not none", () => {
    expect(chainOf(fn(good), undefined).at(-1)).toMatchObject({ text: "not visible to you" });
  });

  test("a Pod that crashes makes the last link red", () => {
    const pod = {
      metadata: { name: "p" },
      status: {
        containerStatuses: [
          { restartCount: 2, state: { waiting: { reason: "CrashLoopBackOff" } } },
        ],
      },
    } as unknown as Pod;
    expect(chainOf(fn(good), [pod]).at(-1)).toMatchObject({ tone: "bad", text: "0 of 1 ready" });
  });
});

describe("YAML and form are the same thing", () => {
  test("there and back", () => {
    const desired: Desired = {
      metadata: { labels: { a: "1" }, annotations: {} },
      spec: {
        source: { inline: { source: "line one\n  line two\n" } },
        env: [{ name: "A", value: "on" }],
      },
    };
    const read = readYaml(yamlOf({ name: "a", namespace: "b" }, desired));
    expect(read).toEqual({ desired, name: "a", namespace: "b" });
  });

  test.each([
    ["a: [", 1],
    ["- 1", 1],
    ["apiVersion: v1\nkind: Pod", 2],
    ["apiVersion: serverless.kyma-project.io/v1alpha2\nkind: Function\nspec: {}", 3],
  ])("what cannot be read has its line: %j", (text, line) => {
    expect(readYaml(text)).toMatchObject({ problem: expect.any(String), line });
  });
});

test("shares of the traffic always add up to 100", () => {
  const three = [
    { revision: 1, percent: 50 },
    { revision: 2, percent: 30 },
    { latest: true, percent: 20 },
  ];
  expect(shared(three, 0, 90).map(({ percent }) => percent)).toEqual([90, 6, 4]);
  expect(shared(three, 0, 100).map(({ percent }) => percent)).toEqual([100, 0, 0]);
  expect(
    shared(
      [
        { latest: true, percent: 100 },
        { revision: 1, percent: 0 },
      ],
      0,
      33,
    ).map(({ percent }) => percent),
  ).toEqual([33, 67]);
  for (let percent = 0; percent <= 100; percent++)
    expect(shared(three, 1, percent).reduce((sum, { percent = 0 }) => sum + percent, 0)).toBe(100);
});

describe("what Functions write", () => {
  test.each([
    ["\u001b[31mred\u001b[0m", "red"],
    ["\u001b]0;title\u0007text", "text"],
    ["\u001b]8;;http://evil\u001b\\link", "link"],
    ["a\u202eb\u0000c\td", "abc\td"],
    ["10 %\r50 %\r100 %", "100 %"],
    ["done\r", "done"],
  ])("%j is shown as %j", (text, shown) => {
    expect(printable(text)).toBe(shown);
  });

  test("in very long lines is cut with a mark, wherever it arrives in pieces", () => {
    const reader = new LineReader();
    const found = ["short\n", "x".repeat(10_000), "y".repeat(20_000), "\nnext", "\n"].flatMap(
      (part) => reader.add(part),
    );
    expect(found.map((line) => line.length)).toEqual([
      5,
      16_384 + " … 13616 more characters".length,
      4,
    ]);
    expect(found[1]).toMatch(/^x{10000}y{6384} … 13616 more characters$/);
  });

  test.each([
    ['{"level":"error","msg":"x"}', "error"],
    ['{"level":50}', "error"],
    ["2026-01-01 WARN low", "warn"],
    ["TypeError: x is not a function", "error"],
    ["all is well", "info"],
    ["no errors found", "info"],
  ])("%j has the level %s", (text, level) => {
    expect(levelOf(text)).toBe(level);
  });

  test("places in the user's own code are found", () => {
    const directory = "/tmp/x/rootfs/usr/src/app/function";
    expect(placeIn(`at main (file://${directory}/handler.js:3:5)`)).toEqual({
      file: "handler.js",
      line: 3,
    });
    expect(
      placeIn(`File "/usr/lib/python3/x.py", line 9\nFile "${directory}/handler.py", line 4`),
    ).toMatchObject({ line: 4 });
    expect(readable(`${directory}/handler.js:3`)).toBe("handler.js:3");
  });
});

describe("rates", () => {
  const counters = (count: number, errors: number) => ({
    requests: { "200": count, "500": errors },
    buckets: [
      ["0.1", count],
      ["0.5", count + errors],
      ["+Inf", count + errors],
    ] as [string, number][],
    coldStarts: 0,
  });

  test("are between two looks at the counters, also when they begin again", () => {
    const before = { time: 10, counters: counters(100, 0) };
    expect(ratesOf(undefined, before).requestsPerSecond).toBeNull();
    expect(ratesOf(before, { time: 12, counters: counters(110, 10) })).toMatchObject({
      requestsPerSecond: 10,
      errorsPerSecond: 5,
    });
    expect(ratesOf(before, { time: 12, counters: counters(4, 0) }).requestsPerSecond).toBe(2);
  });

  test("quantiles are within their bucket", () => {
    expect(
      quantile(
        [
          [0.1, 50],
          [0.2, 100],
          [Infinity, 100],
        ],
        0.5,
      ),
    ).toBeCloseTo(100);
    expect(
      quantile(
        [
          [0.1, 50],
          [0.2, 100],
          [Infinity, 100],
        ],
        0.75,
      ),
    ).toBeCloseTo(150);
    expect(
      quantile(
        [
          [0.1, 0],
          [Infinity, 3],
        ],
        0.5,
      ),
    ).toBeCloseTo(100);
    expect(
      quantile(
        [
          [0.1, 0],
          [Infinity, 0],
        ],
        0.5,
      ),
    ).toBeNull();
  });
});
