/** Handlers in the style of Fission, as its documents write them: `main()` with Flask, in every version. */
import { describe, expect, test } from "vitest";
import { expectAnswer, type Row } from "./handler-rows.ts";
import { installPackages, missingPython, PythonRuntime } from "./testing.ts";

/** Leaves what stands in for Flask. */
const withoutPackages = `import sys
sys.path[:] = [path for path in sys.path if "-packages" not in path]
`;
const form = { "content-type": "application/x-www-form-urlencoded" };

const rows: Row[] = [
  { is: "text", code: `def main(): return "Hello\\n"`, body: "Hello\n" },
  {
    is: "text and a status",
    code: `def main(): return "Not here", 404`,
    status: 404,
    body: "Not here",
  },
  {
    is: "an object with a date in it",
    code: `
from datetime import date, datetime, timedelta, timezone
from uuid import UUID
def main():
    at = datetime(2026, 1, 2, 3, 4, 5)
    return {"date": date(2026, 1, 2), "naive": at, "there": at.replace(tzinfo=timezone(timedelta(hours=1))), "id": UUID(int=7)}`,
    body:
      '{"date": "Fri, 02 Jan 2026 00:00:00 GMT", "naive": "Fri, 02 Jan 2026 03:04:05 GMT", ' +
      '"there": "Fri, 02 Jan 2026 02:04:05 GMT", "id": "00000000-0000-0000-0000-000000000007"}',
  },
  {
    is: "what it was asked",
    code: `
from flask import request, current_app
def main():
    current_app.logger.info("asked for %s", request.path)
    return "%s%s" % (request.headers, request.get_data())`,
    call: { method: "POST", headers: { "x-a": "b" }, body: "words" },
    body: /X-A: b\r\n[^]*b'words'$/,
    output: "asked for /a",
  },
  {
    is: "a redirection",
    code: `
from flask import request, redirect
def main():
    answer = redirect("/list/" + request.form["text"], code=303)
    answer.autocorrect_location_header = False
    return answer`,
    call: { method: "POST", headers: form, body: "text=a" },
    status: 303,
    body: "",
    headers: { location: "/list/a" },
  },
  {
    is: "an answer by abort",
    code: `
from flask import abort, Response
def main(): abort(Response("no", 403))`,
    status: 403,
    body: "no",
  },
  {
    is: "a stream",
    code: `
from flask import request, Response, stream_with_context
def main(): return Response(stream_with_context(f"{int(line)}," for line in request.stream))`,
    call: { method: "POST", body: "1\n2\n" },
    body: "1,2,",
  },
].map(({ is, code, ...more }) => ({
  name: is,
  files: { "handler.py": withoutPackages + code },
  target: "/a",
  ...more,
}));

describe.skipIf(missingPython)("a handler of Fission answers", () => {
  test.each(rows)("$name", expectAnswer);

  test("nothing where it needs Flask itself, and says so", async () => {
    const runtime = await PythonRuntime.launch(
      `${withoutPackages}from flask import render_template\ndef main(): return render_template("a.html")`,
    );
    await using _ = runtime;
    expect(await runtime.exited).toBe(1);
    expect(runtime.output).toContain(
      "loading handler.py: ImportError: flask.render_template needs Flask itself: add flask to the dependencies",
    );
  });

  const starlette = installPackages("starlette==1.0.0");
  test.skipIf(!starlette).each([
    ["", "async "],
    ["from __future__ import annotations\n", ""],
  ])("a request of Starlette's, which its environment for FastAPI has", async (before, how) => {
    const code = `${before}from starlette.requests import Request
from starlette.responses import Response
${how}def main(request: Request): return Response(request.method + request.headers["x-a"], 202)`;
    await using runtime = await PythonRuntime.start(code, { PYTHONPATH: starlette ?? "" });
    expect(await runtime.call("/", { headers: { "x-a": "b" } })).toMatchObject({
      status: 202,
      body: "GETb",
    });
  });
});
