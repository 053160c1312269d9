import { expect, test } from "vitest";
import { failureIn } from "../load-failure.ts";
import { LoadReport, restOf } from "./load-report.ts";

const root = "/home/u/shop";

test.each([
  [
    "JavaScript",
    `loading handler.js: SyntaxError: Unexpected token ';'\nfile://${root}/handler.js:5\nconst x = ;\n          ^\n\n[SyntaxError: Unexpected token ';']\n\nNode.js v24.21.0\n`,
    "const x = ;\n          ^",
  ],
  [
    "TypeScript",
    `loading handler.ts: SyntaxError: Expression expected\n${root}/handler.ts:5\n\nconst x: number = ;\n                  ^\n\nSyntaxError [ERR_INVALID_TYPESCRIPT_SYNTAX]: Expression expected\n`,
    "const x: number = ;\n                  ^",
  ],
  [
    "Python",
    `loading handler.py: SyntaxError: '(' was never closed (handler.py, line 3)\n  File "${root}/handler.py", line 3\n    return (\n           ^\nSyntaxError: '(' was never closed\n`,
    "    return (\n           ^",
  ],
  [
    "an exception",
    `loading handler.js: TypeError: no\n${root}/handler.js:3\nnull.x;\n     ^\n\nTypeError: no\n    at Object.<anonymous> (${root}/handler.js:3:6)\n`,
    "null.x;\n     ^\n    at Object.<anonymous> (handler.js:3:6)",
  ],
  [
    "a program for another platform",
    `loading main.js: Deno is not defined; Deno.serve is part of Deno, and does not exist here: write fetch\n${root}/main.js:3\nDeno.serve();\n^\n\nReferenceError: Deno is not defined\n    at Object.<anonymous> (${root}/main.js:3:1)\n`,
    "loading main.js: Deno is not defined; Deno.serve is part of Deno, and does not exist here: write fetch\nDeno.serve();\n^\n    at Object.<anonymous> (main.js:3:1)",
  ],
])("what a report says besides its summary: %s", (_name, output, rest) => {
  const failure = failureIn(output, root);
  expect(restOf(failure.summary, failure)).toBe(rest);
});

function written() {
  const lines: string[] = [];
  return {
    lines,
    report: new LoadReport((chunk, stream) => lines.push(`${stream} ${chunk.toString()}`)),
  };
}

test("only the report is held back, and passed on when the code is loaded after all", () => {
  const { lines, report } = written();
  report.write(Buffer.from("begin\n"), "stdout");
  report.write(Buffer.from("warning\nloading b.json: none\n"), "stderr");
  report.write(Buffer.from("more\n"), "stderr");
  expect(lines).toEqual(["stdout begin\n", "stderr warning\n"]);
  report.release();
  report.write(Buffer.from("loading c.json: none\n"), "stderr");
  expect(lines.slice(2)).toEqual([
    "stderr loading b.json: none\n",
    "stderr more\n",
    "stderr loading c.json: none\n",
  ]);
});

test("a report is taken once", () => {
  const { lines, report } = written();
  report.write(Buffer.from("loading a.js: Error: no\n"), "stderr");
  report.write(Buffer.from("stack\n"), "stderr");
  expect(report.take().toString()).toBe("loading a.js: Error: no\nstack\n");
  expect(report.take().toString()).toBe("");
  expect(lines).toEqual([]);
});
