/** Handlers in the documented style of the system that Spry succeeds, and of its neighbours, as people bring them. */
import { expect, test } from "vitest";
import { findPython } from "@spry/machine";
import { enginePlatform, onCluster } from "../support/engine.ts";
import { functionManifest } from "../support/platform.ts";
import { neighbourSamples } from "./samples/neighbours.ts";
import { pythonSamples } from "./samples/python.ts";
import { type Sample } from "./samples/sample.ts";
import { successorSamples } from "./samples/successor.ts";

const platform = enginePlatform();

/** Images for a cluster are made from what this machine has; on one machine an interpreter is fetched. */
const missing = (spec: Sample["spec"]) =>
  onCluster && spec?.["runtime"] === "nodejs26"
    ? "this machine has no Node.js 26 for an image"
    : "";

const runs = async ({ name, spec, source, calls }: Sample) => {
  await platform.k("apply -f -", functionManifest(name, source, spec ?? {}));
  await platform.k(`wait --for=condition=Running function/${name} --timeout=110s`);
  for (const { call, answer } of calls)
    expect(await platform.call(`${name}.default`, call)).toMatchObject(answer);
};

for (const sample of [...successorSamples, ...neighbourSamples]) {
  const why = missing(sample.spec);
  test.skipIf(why)(`${sample.is}${why && ` (skipped: ${why})`}`, () => runs(sample));
}
test.skipIf(!(await findPython("3.12"))).each(pythonSamples)("$is (needs Python 3.12)", runs);
