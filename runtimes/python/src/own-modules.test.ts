/** A file with the name of a module of the standard library is the Function's own, and the runtime's work does not depend on it. */
import { execFileSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { missingPython, PythonRuntime } from "./testing.ts";

/** As a process that has loaded all of the runtime and then becomes the Function, which `spry dev` starts as well. */
const warm = [
  "sh",
  "-c",
  `printf '{"directory":"%s","env":{"FUNC_PORT":"%s","SERVER_HOST":"127.0.0.1","SPRY_READY_FD":"3"}}\\n' "$HOME" "$FUNC_PORT" >"$HOME/line"
   unset SPRY_READY_FD
   SPRY_WARM_FD=4 exec "$@" 4<"$HOME/line"`,
  "sh",
];
const starts: [what: string, prefix: string[]][] = [
  ["started with its code", []],
  ["that waited for its code", warm],
];
const forms = ["def", "async def"] as const;
const cases = starts.flatMap(([what, prefix]) => forms.map((form) => ({ what, prefix, form })));

/** All that Python looks for in directories: what is built in, or loaded before it looks there, is never a file's. */
function namesOfTheLibrary(): string[] {
  const program =
    "import sys, _imp; print('\\n'.join(name for name in sys.stdlib_module_names" +
    " if name not in sys.builtin_module_names and not _imp.is_frozen(name) and name != 'encodings'))";
  return execFileSync("python3", ["-c", program], { encoding: "utf8" }).trim().split("\n");
}

describe.skipIf(missingPython)("a runtime", () => {
  test.each(cases)(
    "$what answers next to files of all names of the standard library ($form)",
    async ({ prefix, form }) => {
      const names = missingPython ? [] : namesOfTheLibrary();
      // The first is a statement to the compiler.
      const imported = names.filter((name) => name !== "__future__");
      const files = Object.fromEntries(names.map((name) => [`${name}.py`, "MINE = True\n"]));
      const handler = `
import ${imported.join(", ")}
modules = dict(globals())

${form} main(event, context):
    if event["extensions"]["request"].method == "POST":
        return {"event": event["ce-type"], "data": event["data"]}
    if event["extensions"]["request"].method == "PUT":
        raise ValueError("thrown")
    return {"own": sorted(name for name, value in modules.items() if hasattr(value, "MINE"))}
`;
      await using runtime = await PythonRuntime.start(
        { "handler.py": handler, ...files },
        {},
        prefix,
      );
      const { own } = (await runtime.json()) as { own: string[] };
      expect(own).toEqual(imported.toSorted());
      const event = { specversion: "1.0", id: "1", source: "/a", type: "b", data: { c: [1.5] } };
      const headers = { "content-type": "application/cloudevents+json" };
      const answer = await runtime.json("/", {
        method: "POST",
        headers,
        body: JSON.stringify(event),
      });
      expect(answer).toEqual({ event: "b", data: { c: [1.5] } });
      expect((await runtime.call("/", { method: "PUT" })).status).toBe(500);
      await expect.poll(() => runtime.output).toContain("ValueError: thrown");
    },
  );

  test.each(starts)(
    "%s gives each of the two modules to those that mean it",
    async (_what, prefix) => {
      const files = {
        "handler.py": `
import queue.words
from types import Order
from inside.part import colour
import dataclasses, importlib, typing, other
assert importlib.import_module("queue") is queue
def main(event, context):
    return [queue.words.greeting, queue.__name__, typing.get_type_hints(Order)["number"].__name__, colour, other.parsed]
`,
        "types.py":
          "from __future__ import annotations\nimport dataclasses\n@dataclasses.dataclass\nclass Order:\n    number: Own\nclass Own: ...\n",
        "queue/__init__.py": "from . import words\n",
        "queue/words.py": "greeting = 'hello'\n",
        "inside/__init__.py": "",
        "inside/part.py": "from colorsys import colour\n",
        "colorsys.py": "colour = 'blue'\n",
        // Two folders that are not packages, where the standard library's are.
        "json/data.txt": "",
        "email/data.txt": "",
        "other.py": "import json, email.message\nparsed = json.loads('1')\n",
      };
      await using runtime = await PythonRuntime.start(files, {}, prefix);
      expect(await runtime.json()).toEqual(["hello", "function.queue", "Own", "blue", 1]);
    },
  );

  test.each(starts)("%s gives packages the standard library's", async (_what, prefix) => {
    const files = {
      "handler.py":
        "import colorsys, package\ndef main(event, context):\n    return [colorsys.MINE, package.found]\n",
      "colorsys.py": "MINE = True\n",
      "lib.python3.12/site-packages/package.py":
        "import colorsys, textwrap\nfound = [hasattr(colorsys, 'MINE'), hasattr(textwrap, 'dedent')]\n",
      // As backports of modules that Python has by now.
      "lib.python3.12/site-packages/textwrap.py": "",
    };
    await using runtime = await PythonRuntime.start(files, { FUNC_RUNTIME: "python312" }, prefix);
    expect(await runtime.json()).toEqual([true, [false, true]]);
  });

  test.each(starts)("%s loads a handler of such a name", async (_what, prefix) => {
    const files = { "calendar.py": "def main(event, context):\n    return 'mine'\n" };
    const handing = prefix.map((part) =>
      part.replace('{"FUNC_PORT', '{"MOD_NAME":"calendar","FUNC_PORT'),
    );
    await using runtime = await PythonRuntime.start(files, { MOD_NAME: "calendar" }, handing);
    expect((await runtime.call()).body).toBe("mine");
  });
});
