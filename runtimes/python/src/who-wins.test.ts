/** Which of several candidates in one module is the handler: what a person has named, before `main`, before shapes (contract 8). */
import { describe, expect, test } from "vitest";
import { expectAnswer, type Row } from "./handler-rows.ts";
import { missingPython, PythonRuntime } from "./testing.ts";

const lambda = `
def lambda_handler(event, context): return {"statusCode": 200, "body": "lambda " + event["rawPath"]}
`;
/** As Powertools' resolver and Chalice: an object that is called with an event. */
const resolver = `
class Resolver:
    def resolve(self, event, context): return {"statusCode": 200, "body": "resolved " + event["rawPath"]}
    def __call__(self, event, context): return self.resolve(event, context)
app = Resolver()
`;
const wsgi = `
class App:
    def __call__(self, environ, start_response):
        start_response("200 OK", [])
        return [b"wsgi " + environ["PATH_INFO"].encode()]
    def run(self): raise SystemExit(3)
app = App()
`;
const asgi = `
class App:
    async def __call__(self, scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"asgi " + scope["path"].encode()})
app = App()
`;
const registered = `
import functions_framework
@functions_framework.http
def hello(request): return "registered " + request.path
`;
const main = `
def main(event, context): return "main"
`;

const rows: Row[] = [
  {
    name: "lambda_handler, not the resolver that it calls (AWS SAM's template)",
    files: {
      "app.py": `${resolver}\ndef lambda_handler(event, context): return app.resolve(event, context)`,
    },
    body: "resolved /a",
  },
  { name: "a resolver alone", files: { "app.py": resolver }, body: "resolved /a" },
  {
    name: "lambda_handler, not a WSGI application",
    files: { "app.py": wsgi + lambda },
    body: "lambda /a",
  },
  {
    name: "lambda_handler, not an ASGI application",
    files: { "app.py": asgi + lambda },
    body: "lambda /a",
  },
  {
    name: "lambda_handler, not a main without parameters",
    files: { "app.py": `${lambda}\ndef main(): return "main"` },
    body: "lambda /a",
  },
  {
    name: "lambda_handler, also since python314, where Kyma's main has no parameters",
    files: { "app.py": `${lambda}\ndef main(): return "main"` },
    env: { FUNC_RUNTIME: "python314", HANDLER_FUNC_NAME: "main" },
    body: "lambda /a",
  },
  {
    name: "lambda_handler, not a main that takes the command line's arguments",
    files: { "app.py": `${lambda}\ndef main(argv): return "main"` },
    body: "lambda /a",
  },
  {
    name: "lambda_handler, not a main that it calls",
    files: {
      "app.py": `
def main(event, context): return {"statusCode": 200, "body": "called " + event["rawPath"]}
def lambda_handler(event, context): return main(event, context)`,
    },
    body: "called /a",
  },
  {
    name: "Kyma's main, next to lambda_handler",
    files: { "handler.py": lambda + main },
    body: "main",
  },
  {
    name: "a registered function, not Kyma's main",
    files: { "main.py": registered + main },
    body: "registered /a",
  },
  {
    name: "a registered function that is called main",
    files: { "main.py": registered.replace("hello", "main") },
    body: "registered /a",
  },
  {
    name: "a registered function, not an application",
    files: { "main.py": wsgi + registered },
    body: "registered /a",
  },
  {
    name: "what FUNCTION_TARGET names, not main",
    files: { "main.py": `${main}\ndef other(request): return "other " + request.path` },
    env: { FUNCTION_TARGET: "other" },
    body: "other /a",
  },
  {
    name: "main as FUNCTION_TARGET's",
    files: { "main.py": `def main(request): return "target " + request.path` },
    env: { FUNCTION_TARGET: "main" },
    body: "target /a",
  },
  {
    name: "what HANDLER_FUNC_NAME names, before all others",
    files: {
      "handler.py": `${lambda + registered + main}\ndef run(event, context): return "run"`,
    },
    env: { HANDLER_FUNC_NAME: "run", FUNCTION_TARGET: "hello" },
    body: "run",
  },
  {
    name: "a registered function that HANDLER_FUNC_NAME names",
    files: { "handler.py": registered + main },
    env: { HANDLER_FUNC_NAME: "hello" },
    body: "registered /a",
  },
  {
    name: "main that a person has named, before lambda_handler",
    files: { "handler.py": `${lambda}\ndef main(): return "named"` },
    env: { HANDLER_FUNC_NAME: "main" },
    body: "named",
  },
  {
    name: "the platform's own FUNC_HANDLER does not count as named by a person",
    files: { "handler.py": `${lambda}\ndef main(): return "main"` },
    env: { FUNC_HANDLER: "main" },
    body: "lambda /a",
  },
  {
    name: "Kyma's main, next to an application",
    files: { "handler.py": wsgi + main },
    body: "main",
  },
  {
    name: "an application, not the main that starts it",
    files: { "app.py": `${wsgi}\ndef main(): app.run()` },
    body: "wsgi /a",
  },
  {
    name: "an application, not the main that starts it, since python314",
    files: { "app.py": `${asgi}\ndef main(port=8000):\n    import uvicorn\n    uvicorn.run(app)` },
    env: { FUNC_RUNTIME: "python314", HANDLER_FUNC_NAME: "main" },
    body: "asgi /a",
  },
  {
    name: "Kyma's main without parameters, next to an application, since python314",
    files: { "handler.py": `${wsgi}\ndef main(): return "main"` },
    env: { FUNC_RUNTIME: "python314", HANDLER_FUNC_NAME: "main" },
    body: "main",
  },
  {
    name: "an adapter named handler, not the application that it is for (Mangum)",
    files: {
      "main.py": `${asgi}
class Adapter:
    def __call__(self, event, context): return {"statusCode": 200, "body": "adapted " + event["rawPath"]}
handler = Adapter()`,
    },
    body: "adapted /a",
  },
  {
    name: "an application, not a function of its own that is named handler",
    files: { "main.py": `${asgi}\nasync def handler(item_id, q=None): return {}` },
    body: "asgi /a",
  },
  {
    name: "what create_app makes",
    files: {
      "app.py": `${wsgi.replace("app = App()", "")}\ndef create_app(config=None): return App()`,
    },
    body: "wsgi /a",
  },
  {
    name: "what create_app makes, not the main that starts it",
    files: {
      "app.py": `${wsgi.replace("app = App()", "")}\ndef create_app(): return App()\ndef main(): create_app().run()`,
    },
    body: "wsgi /a",
  },
  {
    name: "an application in wsgi.py, not the package that makes it",
    files: { "wsgi.py": wsgi.replace("app =", "application =") },
    body: "wsgi /a",
  },
  { name: "an application in asgi.py", files: { "asgi.py": asgi }, body: "asgi /a" },
  {
    name: "an application named server",
    files: { "app.py": wsgi.replace("app =", "server =") },
    body: "wsgi /a",
  },
  {
    name: "the only application, by another name",
    files: { "main.py": asgi.replace("app =", "api =") },
    body: "asgi /a",
  },
  {
    name: "handler, where an object can only be asked for its attributes during a request",
    files: {
      "main.py": `
class Proxy:
    def __call__(self, *args): pass
    def __getattr__(self, name): raise RuntimeError("no request")
current = Proxy()
${lambda.replace("lambda_handler", "handler")}`,
    },
    body: "lambda /a",
  },
  {
    name: "the application of Django that manage.py leads to",
    files: {
      "manage.py": `os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mysite.settings")`,
      "mysite/wsgi.py": wsgi.replace("app =", "application ="),
    },
    body: "wsgi /a",
  },
  {
    name: "a handler, not an app that is not one",
    files: {
      "handler.py": `
class Typer:
    def __call__(self, *args, **kwargs): raise SystemExit(2)
cli = Typer()
class app: pass
def handler(event, context): return {"statusCode": 200, "body": "lambda " + event["rawPath"]}`,
    },
    body: "lambda /a",
  },
];

const wrong: [name: string, code: string, env: Record<string, string>, message: string][] = [
  [
    "HANDLER_FUNC_NAME",
    "def hello(event, context): pass\ndef bye(event, context): pass",
    { HANDLER_FUNC_NAME: "run" },
    "loading handler.py: HANDLER_FUNC_NAME is 'run', and handler.py does not define that name; it defines hello, bye",
  ],
  [
    "HANDLER_FUNC_NAME of a value",
    "run = {}",
    { HANDLER_FUNC_NAME: "run" },
    "loading handler.py: HANDLER_FUNC_NAME is 'run', and handler.py defines it as dict, which cannot be called; it defines no functions",
  ],
  [
    "FUNCTION_TARGET",
    "def hello(request): pass\ndef main(event, context): pass",
    { FUNCTION_TARGET: "helo" },
    "loading handler.py: FUNCTION_TARGET is 'helo', and handler.py does not define that name; it defines hello, main",
  ],
  [
    "nothing",
    "import json\ndef hello(event, context): pass\n_private = print",
    {},
    "loading handler.py: it defines neither a function main(event, context) nor an app, and it defines hello: " +
      "name the function that handles requests with HANDLER_FUNC_NAME",
  ],
];

describe.skipIf(missingPython)("which one is the handler", () => {
  test.each(rows.map((row) => ({ target: "/a", ...row })))("$name", expectAnswer);

  test.each(wrong)(
    "a name that names nothing says what was expected and found: %s",
    async (_, code, env, message) => {
      await using runtime = await PythonRuntime.launch(code, env);
      expect(await runtime.exited).toBe(1);
      expect(runtime.output.trim()).toBe(message);
    },
  );
});
