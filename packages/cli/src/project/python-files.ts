/** Where the handler of a Python Function is, as its runtime looks for it (docs/runtime-contract.md 1.2). */
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";

const names = [
  "handler.py",
  "main.py",
  "lambda_function.py",
  "func.py",
  "function/func.py",
  "app.py",
  "wsgi.py",
  "asgi.py",
  "application.py",
  "server.py",
  "app/main.py",
  "api/index.py",
  // Of platforms whose programs are refused by name.
  "function_app.py",
  "entry.py",
  "worker.py",
];
const requirements = ["requirements.txt", "pyproject.toml"];

/** The first that a directory has; of a project of Django the file with its application. */
export function pythonFileOf(root: string): string | undefined {
  return names.find((name) => existsSync(path.join(root, name))) ?? djangoFileOf(root);
}

/** Whether it looks like Python; `isNodeToo`: it has a package.json, which may only list plugins of other tools. */
export function looksLikePython(root: string, isNodeToo: boolean): boolean {
  const hasRequirements = requirements.some((name) => existsSync(path.join(root, name)));
  const hasFile = pythonFileOf(root) !== undefined;
  return isNodeToo ? hasRequirements && hasFile : hasRequirements || hasFile;
}

/** `manage.py` names the settings, and next to them or above are `wsgi.py` and `asgi.py`. */
function djangoFileOf(root: string): string | undefined {
  const manage = path.join(root, "manage.py");
  if (!existsSync(manage)) return undefined;
  const pattern = /DJANGO_SETTINGS_MODULE["']\s*,\s*["']([\w.]+)["']/;
  const parts = (pattern.exec(readFileSync(manage, "utf8"))?.[1] ?? "").split(".").slice(0, -1);
  for (let count = parts.length; count > 0; count--)
    for (const file of ["wsgi.py", "asgi.py"]) {
      const name = [...parts.slice(0, count), file].join("/");
      if (existsSync(path.join(root, name))) return name;
    }
  return undefined;
}
