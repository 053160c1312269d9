import { type Function } from "@spry/function";
import { expect, test } from "vitest";
import { explain } from "./explanation.ts";

type Conditions = NonNullable<NonNullable<Function["status"]>["conditions"]>;

const is = (type: string, status: string, reason: string, message = "") =>
  ({ type, status, reason, message }) as Conditions[number];
const configured = is("ConfigurationReady", "True", "ConfigMapCreated");
const built = is("BuildReady", "True", "JobFinished");
const crash = `Deployment hello failed: exit code 1: …
module.exports = {

SyntaxError: Unexpected end of input
    at wrapSafe (node:internal/modules/cjs/loader:1861:18)`;

const ready = [configured, built, is("Running", "True", "DeploymentReady")];

test.each<[string, Partial<Function["spec"]>, string, string]>([
  [
    "no Pods, because its replicas say so",
    { replicas: 0 },
    "ScaledToZero",
    "is scaled to zero: its spec.replicas is 0, and requests do not change that",
  ],
  [
    "no Pods before the first request",
    { replicas: 0, scaleConfig: { minReplicas: 0, maxReplicas: 1 } },
    "NoReadyEndpoint",
    "has no Pod that is ready",
  ],
  ["no Pods for another reason", { replicas: 1 }, "NoReadyEndpoint", "has no Pod that is ready"],
])("%s has a reason of its own", (_, spec, reason, message) => {
  const fn = { metadata: { name: "hello" }, spec, status: { conditions: ready } } as Function;
  expect(explain("default/hello", fn, true)).toEqual({
    state: reason === "ScaledToZero" ? "scaledToZero" : "absent",
    reason,
    message: `Function default/hello ${message}`,
  });
});

test.each<[string, Conditions, string, string, string]>([
  ["nothing yet", [], "deploying", "NoReadyEndpoint", "has no Pod that is ready"],
  [
    "a wrong spec",
    [is("ConfigurationReady", "False", "InvalidFunctionSpec", "spec.env: no")],
    "failed",
    "InvalidFunctionSpec",
    "is not ready: spec.env: no",
  ],
  [
    "a build under way",
    [is("BuildReady", "Unknown", "JobRunning", "Job b is still in progress"), configured],
    "deploying",
    "JobRunning",
    "is not ready: Job b is still in progress",
  ],
  [
    "a crash that the first line names already, said once",
    [
      is(
        "Running",
        "False",
        "DeploymentFailed",
        crash.replace("…", "SyntaxError: Unexpected end of input"),
      ),
      configured,
      built,
    ],
    "failed",
    "DeploymentFailed",
    "is not ready: Deployment hello failed: exit code 1: SyntaxError: Unexpected end of input",
  ],
  [
    "a crash, with the line that names it",
    [is("Running", "False", "DeploymentFailed", crash), configured, built],
    "failed",
    "DeploymentFailed",
    "is not ready: Deployment hello failed: exit code 1: SyntaxError: Unexpected end of input",
  ],
  [
    "a Pod that was lost",
    [configured, built, is("Running", "True", "DeploymentReady")],
    "absent",
    "NoReadyEndpoint",
    "has no Pod that is ready",
  ],
])("%s is explained", (_, conditions, state, reason, message) => {
  const fn = { metadata: { name: "hello" }, spec: {}, status: { conditions } } as Function;
  expect(explain("default/hello", fn, false)).toEqual({
    state,
    reason,
    message: `Function default/hello ${message}`,
  });
  const shown = explain("default/hello", fn, true);
  expect(shown).toMatchObject({ state, reason });
  expect(shown.message).toMatch(
    / (?:has no Pod that is ready|the reason is in the Function's conditions)$/,
  );
});
