/** A runtime that waits is for Python's Functions as well. */
import { afterAll, beforeAll, test } from "vitest";
import { deployOnDemand } from "../support/on-demand.ts";
import { Platform } from "../support/platform.ts";
import { impatientServing } from "../support/serving-settings.ts";
import { coldAndWarm } from "../support/warm-starts.ts";

const limitMs = 180_000;
const platform = new Platform({ args: ["--no-example", "--sandbox=process", "--warm=2"] });

beforeAll(async () => {
  await platform.start();
  await platform.k("apply -f -", impatientServing);
}, limitMs);
afterAll(() => platform.remove(), limitMs);

const python = `import os, sys
def main(event, context):
    return {"env": dict(os.environ), "cwd": os.getcwd(), "program": sys.argv[0]}
`;

test(
  "a Python Function from zero becomes the process that waited",
  async () => {
    await deployOnDemand(platform, "snake", python, { runtime: "python312" });
    await coldAndWarm(platform, "snake");
  },
  limitMs,
);
