/** Builds of Python Functions; of builds of all kinds, reproducible.test.ts shows the same in `npm test`. */
import { expect, test, vi } from "vitest";
import { buildFunctionImage } from "../index.ts";
import { given } from "../testing/build.ts";
import { pythonOnThisMachine, startPythonIndex } from "../testing/python-index.ts";
import { temporaryDirectory } from "../testing/registry.ts";

vi.setConfig({ testTimeout: 120_000 });

const version = pythonOnThisMachine();
const handler = "import greeting\ndef main(event, context):\n    return greeting.greet()\n";
const files = { "handler.py": handler, "requirements.txt": "# ours\ngreeting ~= 1.2\n" };

test.skipIf(!version)("a build gives the same bytes wherever it is made", async () => {
  const { pipConfig } = await startPythonIndex();
  const runtime = `python${version?.replace(".", "")}`;
  const { build, host } = await given(files, { runtime, pipConfig });
  const { image } = await buildFunctionImage(build);
  const elsewhere = { dependencyCache: `${host}/other`, scratch: temporaryDirectory() };
  expect((await buildFunctionImage({ ...build, ...elsewhere })).image).toBe(image);
});
