import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, expect, test } from "vitest";
import { openProject } from "./project.ts";

let root = "";
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** A directory with these files, and what it is taken for. */
function taken(files: Record<string, string>) {
  root = mkdtempSync(path.join(tmpdir(), "spry-project-"));
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
    writeFileSync(path.join(root, file), text);
  }
  const { handler, runtime } = openProject(root);
  return `${runtime.language} ${handler}`;
}

const plugins = JSON.stringify({ devDependencies: { "serverless-python-requirements": "^6.0.0" } });
const manage = `os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'mysite.settings')`;

test.each<[files: Record<string, string>, is: string]>([
  [{ "handler.py": "", "requirements.txt": "", "package.json": plugins }, "python handler.py"],
  [{ "app.py": "", "requirements.txt": "", "package.json": plugins }, "python app.py"],
  [{ "main.py": "", "pyproject.toml": "", "package.json": plugins }, "python main.py"],
  [
    {
      "app.py": "",
      "requirements.txt": "",
      "package.json": `{"main":"index.js","scripts":{"build":"tailwind"}}`,
    },
    "python app.py",
  ],
  [
    { "app.py": "", "requirements.txt": "", "index.js": "", "package.json": plugins },
    "nodejs index.js",
  ],
  [
    {
      "app.py": "",
      "requirements.txt": "",
      "src/a.ts": "",
      "package.json": `{"scripts":{"start":"node src/a.ts"}}`,
    },
    "nodejs src/a.ts",
  ],
  [{ "wsgi.py": "" }, "python wsgi.py"],
  [{ "asgi.py": "", "requirements.txt": "" }, "python asgi.py"],
  [{ "app/main.py": "", "requirements.txt": "" }, "python app/main.py"],
  [{ "manage.py": manage, "mysite/wsgi.py": "", "mysite/asgi.py": "" }, "python mysite/wsgi.py"],
  [{ "manage.py": manage, "mysite/asgi.py": "", "requirements.txt": "" }, "python mysite/asgi.py"],
  [
    {
      "manage.py": manage.replace("mysite.settings", "config.settings.local").replaceAll("'", '"'),
      "config/wsgi.py": "",
    },
    "python config/wsgi.py",
  ],
])("a directory is taken for its language: %j → %s", (files, is) => {
  expect(taken(files)).toBe(is);
});

function opened(packageJson: object, ...files: string[]) {
  root = mkdtempSync(path.join(tmpdir(), "spry-project-"));
  writeFileSync(path.join(root, "package.json"), JSON.stringify(packageJson));
  for (const file of files) {
    mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
    writeFileSync(path.join(root, file), "");
  }
  const { handler, config } = openProject(root);
  return { handler, module: config.env?.["HANDLER_MOD_NAME"] };
}

test("the file that the script start runs is the handler where there is no other", () => {
  const tsx = { scripts: { start: "tsx --enable-source-maps ./src/index.ts" } };
  expect(opened(tsx, "src/index.ts")).toEqual({ handler: "src/index.ts", module: "src/index" });
  rmSync(root, { recursive: true });
  const built = { scripts: { build: "tsc", start: "node dist/index.js" } };
  expect(opened(built, "src/index.ts")).toEqual({
    handler: "dist/index.js",
    module: "dist/index",
  });
  rmSync(root, { recursive: true });
  expect(opened(tsx, "src/index.ts", "handler.js")).toEqual({
    handler: "handler.js",
    module: undefined,
  });
  rmSync(root, { recursive: true });
  const named = { main: "server.js", scripts: { start: "node server.js" } };
  expect(opened(named, "server.js")).toEqual({ handler: "server.js", module: undefined });
});

test.each(["node ../other.js", "node /etc/other.js", "next start", "tsx src/missing.ts"])(
  "the script `start` does not name a handler when it runs no file of the directory: %s",
  (start) => {
    expect(() => opened({ scripts: { start } })).toThrow("has no handler for the runtime");
  },
);

test.each<[scripts: Record<string, string>, files: string[], handler: string]>([
  [{ start: "NODE_ENV=production MODE=x node -r ./pre.js srv.js --flag" }, ["srv.js"], "srv.js"],
  [{ start: "cross-env A=1 node srv" }, ["srv.mjs"], "srv.mjs"],
  [{ start: "node --import ./pre.js ./bin/www" }, ["bin/www.js"], "bin/www.js"],
  [
    { start: "nest start", "start:prod": "node dist/main", build: "nest build" },
    [],
    "dist/main.js",
  ],
  [{ start: "faas-js-runtime ./build/index.js", build: "tsc" }, [], "build/index.js"],
  [{}, ["server.js"], "server.js"],
])("the scripts %j lead to their file", (scripts, files, handler) => {
  expect(opened({ scripts }, ...files).handler).toBe(handler);
});

test.each<[yaml: string, files: string[], env: Record<string, string>]>([
  [
    "handler: src/orders.create\ndialect: lambda",
    ["src/orders.ts"],
    { HANDLER_MOD_NAME: "src/orders", HANDLER_FUNC_NAME: "create", HANDLER_DIALECT: "lambda" },
  ],
  [
    "handler: handler.hello\ndialect: lambda",
    ["handler.py"],
    { HANDLER_MOD_NAME: "handler", HANDLER_FUNC_NAME: "hello", HANDLER_DIALECT: "lambda" },
  ],
  [
    "handler: handler.js\ndialect: lambda",
    ["handler.js"],
    { HANDLER_MOD_NAME: "handler", HANDLER_DIALECT: "lambda" },
  ],
  ["dialect: lambda", ["handler.js"], { HANDLER_DIALECT: "lambda" }],
  [
    "handler: src/orders.create\ndialect: lambda\nenv:\n  HANDLER_FUNC_NAME: mine",
    ["src/orders.js"],
    { HANDLER_MOD_NAME: "src/orders", HANDLER_FUNC_NAME: "mine", HANDLER_DIALECT: "lambda" },
  ],
])("%j", (yaml, files, env) => {
  taken({ "spry.yaml": yaml, ...Object.fromEntries(files.map((file) => [file, ""])) });
  expect(openProject(root).config.env).toEqual(env);
});

test("handler can name a file that the build script makes", () => {
  opened({ scripts: { build: "nest build" } }, "index.js");
  writeFileSync(path.join(root, "spry.yaml"), "handler: dist/main.js");
  expect(openProject(root)).toMatchObject({
    handler: "dist/main.js",
    config: { env: { HANDLER_MOD_NAME: "dist/main" } },
  });
});
