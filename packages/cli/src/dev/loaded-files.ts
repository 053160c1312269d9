/** Which files a Function's code has loaded: its process writes their paths, one a line, to descriptor 5. */
import { writeFileSync } from "node:fs";
import path from "node:path";
import { type Runtime } from "@spry/function";

export const loadedDescriptor = 5;

/** Writes what reports them. For Node.js a module for `--require`, for Python a program that runs the one that follows it. */
export function writeLoadedHook(scratch: string, language: Runtime["language"]): string {
  const isPython = language === "python";
  const file = path.join(scratch, isPython ? "loaded.py" : "loaded.cjs");
  const text = isPython ? inPython : `(${reportLoaded.toString()})(${loadedDescriptor});\n`;
  writeFileSync(file, text);
  return file;
}

/** Runs in the Function's process, from its text: it can use nothing of this file. */
function reportLoaded(descriptor: number): void {
  const module = process.getBuiltinModule("node:module");
  const { writeSync } = process.getBuiltinModule("node:fs");
  const { fileURLToPath } = process.getBuiltinModule("node:url");
  const seen = new Set<string>();
  const report = (url: string) => {
    if (seen.has(url) || !url.startsWith("file:")) return;
    seen.add(url);
    try {
      writeSync(descriptor, `${fileURLToPath(url)}\n`);
    } catch {
      // The reader has ended.
    }
  };
  module.registerHooks({
    resolve(specifier, context, nextResolve) {
      try {
        const found = nextResolve(specifier, context);
        report(found.url);
        return found;
      } catch (error) {
        // Once it exists, the code is to be loaded again.
        if (/^\.{1,2}\//.test(specifier) && context.parentURL?.startsWith("file:"))
          report(new URL(specifier, context.parentURL).href);
        throw error;
      }
    },
  });
}

/** Of installed packages only those that are not Python's own. */
const inPython = `import os
import sys

def _install():
    loader = sys.modules["_frozen_importlib_external"].SourceFileLoader
    stats = loader.path_stats
    own = os.path.dirname(os.__file__) + os.sep
    seen = set()

    def path_stats(self, path):
        if path not in seen and (not path.startswith(own) or "site-packages" in path):
            seen.add(path)
            try:
                os.write(${loadedDescriptor}, (os.path.abspath(path) + "\\n").encode())
            except OSError:
                pass
        return stats(self, path)

    loader.path_stats = path_stats

_install()
del _install, sys.argv[0]
__file__ = sys.argv[0]
sys.path[0] = os.path.dirname(__file__)
with open(__file__, "rb") as _program:
    _program = compile(_program.read(), __file__, "exec")
exec(_program)
`;
