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
