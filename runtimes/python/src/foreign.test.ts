/** Programs of other platforms that are refused by name, and those that only look like them. */
import { describe, expect, test } from "vitest";
import { expectAnswer, type Row } from "./handler-rows.ts";
import { missingPython, PythonRuntime } from "./testing.ts";

/** As much of the packages as their programs show. */
const azure = {
  "azure/__init__.py": "",
  "azure/functions.py": `
class HttpRequest: pass
class HttpResponse: pass
class FunctionApp:
    def route(self, route): return lambda function: function`,
};
const workers = { "workers.py": "class WorkerEntrypoint: pass" };
const vercel = `
from http.server import BaseHTTPRequestHandler
class handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
`;

const refused: [name: string, files: Record<string, string>, message: string][] = [
  [
    "Vercel's class",
    { "handler.py": vercel },
    "handler is a class of http.server, as Vercel's functions are",
  ],
  [
    "Vercel's class in its folder",
    { "api/index.py": vercel },
    "loading api/index.py: handler is a class of http.server",
  ],
  [
    "Azure's main",
    {
      ...azure,
      "main.py":
        "import azure.functions as func\ndef main(req: func.HttpRequest) -> func.HttpResponse: pass",
    },
    "main takes a request of Azure Functions",
  ],
  [
    "Azure's main with annotations as text",
    {
      ...azure,
      "main.py":
        "from __future__ import annotations\nimport azure.functions as func\ndef main(req: func.HttpRequest): pass",
    },
    "main takes a request of Azure Functions",
  ],
  [
    "Azure's FunctionApp",
    {
      ...azure,
      "function_app.py":
        "import azure.functions as func\napp = func.FunctionApp()\n@app.route(route='a')\ndef hello(req): pass",
    },
    "loading function_app.py: app is a FunctionApp of Azure Functions",
  ],
  [
    "Azure's without its package",
    { "function_app.py": "import azure.functions" },
    "it is part of Azure Functions",
  ],
  [
    "Cloudflare's function",
    { ...workers, "entry.py": "async def on_fetch(request, env): pass" },
    "the program is a Worker of Cloudflare",
  ],
  [
    "Cloudflare's class",
    {
      ...workers,
      "entry.py": "from workers import WorkerEntrypoint\nclass Default(WorkerEntrypoint): pass",
    },
    "the program is a Worker of Cloudflare",
  ],
  [
    "Cloudflare's modules",
    { "main.py": "from js import Response" },
    "it is part of Cloudflare's Workers",
  ],
  [
    "Modal's App",
    {
      "modal/__init__.py": "class App:\n    def function(self): return lambda function: function",
      "app.py": "import modal\napp = modal.App()\n@app.function()\ndef square(x): return x * x",
    },
    "loading app.py: app is an App of Modal",
  ],
  [
    "Beam's endpoint",
    {
      "beam/__init__.py":
        "class Endpoint:\n    def __init__(self, function): pass\n    def __call__(self, **inputs): pass\nendpoint = Endpoint",
      "app.py": "from beam import endpoint\n@endpoint\ndef handler(**inputs): return {}",
    },
    "loading app.py: handler is an Endpoint of Beam",
  ],
  [
    "Modal's without its package",
    { "app.py": "import modal\napp = modal.App('a')" },
    "it is part of Modal",
  ],
  [
    "a page of Streamlit",
    {
      "streamlit.py": "def title(text): pass",
      "app.py": "import streamlit as st\nst.title('Hello')",
    },
    "the program is a page of Streamlit",
  ],
  [
    "a job of Cloud Run",
    {
      "main.py":
        "import os\nTASK = os.getenv('CLOUD_RUN_TASK_INDEX', 0)\ndef main(sleep_ms=0, fail_rate=0): print(TASK)\nif __name__ == '__main__': main()",
    },
    "the program is a job of Cloud Run",
  ],
  [
    "the Fn Project's function",
    { "fdk.py": "", "func.py": "import fdk\ndef handler(ctx, data=None): pass" },
    "handler(ctx, data) is a function of the Fn Project",
  ],
];

const served: Row[] = [
  {
    name: "main, next to a class of http.server",
    files: { "handler.py": `${vercel}def main(event, context): return "main"` },
    body: "main",
  },
  {
    name: "lambda_handler, next to a FunctionApp",
    files: {
      ...azure,
      "handler.py":
        "import azure.functions as func\napp = func.FunctionApp()\ndef lambda_handler(event, context): return 'lambda'",
    },
    body: "lambda",
  },
];

describe.skipIf(missingPython)("a program of another platform", () => {
  test.each(refused)("is refused by name: %s", async (_, files, message) => {
    await using runtime = await PythonRuntime.launch(files);
    expect(await runtime.exited).toBe(1);
    expect(runtime.output).toContain(message);
    expect(runtime.output).toContain(
      "which Spry does not serve: write def main(event, context), or an application of WSGI or ASGI named app (docs/handlers.md",
    );
  });

  test("that needs AWS's packages says where they are declared", async () => {
    await using runtime = await PythonRuntime.launch({
      "boto3.py": "raise ModuleNotFoundError(\"No module named 'boto3'\", name='boto3')",
      "lambda_function.py": "import boto3",
    });
    expect(await runtime.exited).toBe(1);
    expect(runtime.output).toContain(
      "loading lambda_function.py: ModuleNotFoundError: No module named 'boto3': unlike AWS Lambda's, " +
        "Spry's runtime has no AWS packages: add boto3 to requirements.txt",
    );
  });

  test.each(served)("is not what only looks like one: $name", expectAnswer);
});
