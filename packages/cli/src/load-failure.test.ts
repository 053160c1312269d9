import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test, onTestFinished } from "vitest";
import { failureIn } from "./load-failure.ts";

const rows: [string, string, string][] = [
  [
    "JavaScript",
    "/app/handler.js:4\nconst a = ;\n          ^\n\nSyntaxError: Unexpected token ';'\n    at x\n\nNode.js v24.1.0\n",
    "handler.js:4: SyntaxError: Unexpected token ';'",
  ],
  [
    "a package that is missing",
    "Error: Cannot find module 'x'\nRequire stack:\n- /app/lib/a.js\n    at Object.<anonymous> (/app/lib/a.js:2:1) {\n",
    "lib/a.js:2: Error: Cannot find module 'x'",
  ],
  [
    "Python",
    'Traceback (most recent call last):\n  File "/app/handler.py", line 1, in <module>\n    import b\n  File "/app/b.py", line 3\n    x = (\n        ^\nSyntaxError: \'(\' was never closed\n',
    "b.py:3: SyntaxError: '(' was never closed",
  ],
  [
    "no place",
    "loading the Function: it has neither handler.js nor index.js",
    "loading the Function: it has neither handler.js nor index.js",
  ],
  ["nothing", "", "the process ended without a message"],
];
test.each(rows)("names place and reason: %s", (_name, output, summary) => {
  expect(failureIn(output, "/app").summary).toBe(summary);
});

test.each([
  ["Error [ERR_MODULE_NOT_FOUND]: Cannot find package '@a/b' imported from /x", "npm install @a/b"],
  ["ModuleNotFoundError: No module named 'yaml'", "requirements.txt"],
  ["Error: Cannot find package of the order", undefined],
])("%s: names the package that is missing", (output, wayOut) => {
  const found = failureIn(output).wayOut;
  if (wayOut === undefined) expect(found).toBeUndefined();
  else expect(found).toContain(wayOut);
});

test("what is imported and does not exist is named with the line of the import", () => {
  const root = mkdtempSync(path.join(tmpdir(), "spry-load-failure-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  writeFileSync(path.join(root, "handler.ts"), '// note\nimport { sides } from "./missing.ts";\n');
  const output = `Error: Cannot find module '${root}/missing.ts' imported from ${root}/handler.ts`;
  expect(failureIn(output, root).summary).toBe(
    "handler.ts:2: Error: Cannot find module 'missing.ts' imported from handler.ts",
  );
});
