/** Programs without a handler that serve only if they are the main one. */
import { describe, expect, test } from "vitest";
import { expectAnswer, type Row } from "./handler-rows.ts";
import { missingPython, PythonRuntime } from "./testing.ts";

/** An application, made and served by functions. */
const guarded = `
from wsgiref.simple_server import make_server
import sys
def main():
    def site(environ, start_response):
        start_response("200 OK", [])
        return [f"{__name__} {len(sys.argv)}".encode()]
    make_server("", 0, site).serve_forever()
`;

const served: Row[] = [
  {
    name: "by a main() that starts a server",
    files: { "main.py": `${guarded}if __name__ == "__main__":\n    main()\n` },
    body: "__main__ 1",
  },
  {
    name: "by a function of another name, with arguments of the command line",
    files: {
      "app.py": `${guarded.replace("main()", "serve(port)")}
if '__main__' == __name__:
    import argparse
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8000)
    serve(parser.parse_args().port)
`,
    },
    body: "__main__ 1",
  },
  {
    name: "by what may be loaded once in a process",
    files: {
      "once.py":
        "loaded = []\ndef load(name):\n    assert not loaded, loaded\n    loaded.append(name)\n",
      "main.py": `import once\nonce.load(__name__)\n${guarded}if __name__ == "__main__":\n    main()\n`,
    },
    body: "__main__ 1",
  },
];

const refused: [name: string, source: string, message: string][] = [
  [
    "with a server that cannot be called",
    `
from http.server import HTTPServer, SimpleHTTPRequestHandler
def run(): HTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler).serve_forever()
if __name__ == "__main__": run()`,
    "it starts a server of socketserver or http.server with handlers of the class SimpleHTTPRequestHandler",
  ],
  [
    "that does something else",
    `
def work(): print("worked")
if __name__ == "__main__": work()`,
    "it defines neither a function main(event, context) nor an app, and it defines work",
  ],
  [
    "that fails",
    `
def work(): raise SystemExit("usage: main.py FILE")
if __name__ == "__main__": work()`,
    "it defines no handler, and as the main program it ends with SystemExit: usage: main.py FILE",
  ],
  [
    "that neither serves nor ends",
    `
import time
def work():
    while True: time.sleep(0.1)
if __name__ == "__main__": work()`,
    "it defines no handler, and as the main program it has taken 10 s so far, in line 4 of main.py, without a server",
  ],
];

describe.skipIf(missingPython)("a program that asks whether it is the main one", () => {
  test.each(served)("is served: $name", expectAnswer);

  test.each(refused)("is refused: one %s", async (_, source, message) => {
    await using runtime = await PythonRuntime.launch({ "main.py": source });
    expect(await runtime.exited).toBe(1);
    expect(runtime.output).toContain(message);
  });

  test("is not run as that where it has a handler", async () => {
    await using runtime = await PythonRuntime.start({
      "main.py": `
def main(event, context): return "handled"
if __name__ == "__main__": raise SystemExit("it ran")`,
    });
    expect(await runtime.call()).toMatchObject({ status: 200, body: "handled" });
  });
});
