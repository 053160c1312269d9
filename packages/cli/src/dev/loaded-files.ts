/**
 * Which files a Function's code has loaded, and which it writes: its process writes their paths, one a line, to descriptor 5. Before one
 * that it is about to write stands `>`.
 */
import { writeFileSync } from "node:fs";
import path from "node:path";
import { type Runtime } from "@spry/function";

export const loadedDescriptor = 5;

/** Writes what reports them. For Node.js a module for `--require`, for Python a program that runs the one that follows it. */
export function writeLoadedHook(scratch: string, language: Runtime["language"]): string {
  const isPython = language === "python";
  const file = path.join(scratch, isPython ? "loaded.py" : "loaded.cjs");
  const text = isPython
    ? inPython
    : `(${reportLoaded.toString()})(${loadedDescriptor});\n(${reportWritten.toString()})(${loadedDescriptor});\n`;
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

/** Runs there, too. What native code and other processes write is not seen. */
function reportWritten(descriptor: number): void {
  const fs = process.getBuiltinModule("node:fs");
  const path = process.getBuiltinModule("node:path");
  const { fileURLToPath } = process.getBuiltinModule("node:url");
  const { syncBuiltinESMExports } = process.getBuiltinModule("node:module");
  const { writeSync } = fs;
  const report = (place: unknown) => {
    if (typeof place !== "string" && !(place instanceof URL)) return;
    try {
      const file = typeof place === "string" ? path.resolve(place) : fileURLToPath(place);
      writeSync(descriptor, `>${file}\n`);
    } catch {
      // The reader has ended.
    }
  };
  const places: Record<string, (args: unknown[]) => unknown[]> = {
    open: ([file, flags = "r"]) => (flags === "r" || flags === 0 ? [] : [file]),
    writeFile: ([file]) => [file],
    appendFile: ([file]) => [file],
    truncate: ([file]) => [file],
    unlink: ([file]) => [file],
    rm: ([file]) => [file],
    copyFile: ([, to]) => [to],
    link: ([, to]) => [to],
    symlink: ([, to]) => [to],
    rename: (args) => args.slice(0, 2),
  };
  type Functions = Record<string, (...args: unknown[]) => unknown>;
  const follow = (of: object, name: string, placesIn: (args: unknown[]) => unknown[]) => {
    const all = of as Functions;
    const original = all[name];
    if (original === undefined) return;
    const followed = function (this: unknown, ...args: unknown[]) {
      placesIn(args).forEach(report);
      return Reflect.apply(original, this, args);
    };
    // With what `util.promisify` looks for.
    all[name] = Object.defineProperties(followed, Object.getOwnPropertyDescriptors(original));
  };
  for (const [name, placesIn] of Object.entries(places)) {
    for (const each of [name, `${name}Sync`]) follow(fs, each, placesIn);
    follow(fs.promises, name, placesIn);
  }
  syncBuiltinESMExports();
}

/** Of installed packages only those that are not Python's own. */
const inPython = `import os
import sys

def _install():
    loader = sys.modules["_frozen_importlib_external"].SourceFileLoader
    stats, close = loader.path_stats, os.closerange
    own = os.path.dirname(os.__file__) + os.sep
    seen = set()
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    places = {
        "open": lambda path, mode, flags: [path] if flags & writing else [],
        "os.rename": lambda source, target, *rest: [source, target],
        "os.remove": lambda path, *rest: [path],
        "os.truncate": lambda path, *rest: [path],
        "os.link": lambda source, target, *rest: [target],
        "os.symlink": lambda source, target, *rest: [target],
        "sqlite3.connect": lambda path: [path, str(path) + "-journal", str(path) + "-wal", str(path) + "-shm"],
    }

    def report(mark, path):
        try:
            os.write(${loadedDescriptor}, os.fsencode(mark + os.path.abspath(path)) + b"\\n")
        except (OSError, TypeError, ValueError):
            pass

    def path_stats(self, path):
        if path not in seen and (not path.startswith(own) or "site-packages" in path):
            seen.add(path)
            report("", path)
        return stats(self, path)

    def audit(event, args):
        placed = places.get(event)
        if placed is not None:
            for path in placed(*args):
                if isinstance(path, (str, os.PathLike)):
                    report(">", path)

    def closerange(low, high):
        if low <= ${loadedDescriptor} < high:
            close(low, ${loadedDescriptor})
            low = ${loadedDescriptor} + 1
        close(low, high)

    loader.path_stats = path_stats
    # Workers close what is not theirs; this is theirs as well, and no file of theirs may get its number.
    os.closerange = closerange
    os.set_inheritable(${loadedDescriptor}, False)
    sys.addaudithook(audit)

_install()
del _install, sys.argv[0]
__file__ = sys.argv[0]
sys.path[0] = os.path.dirname(__file__)
with open(__file__, "rb") as _program:
    _program = compile(_program.read(), __file__, "exec")
exec(_program)
`;
