import { expect, test } from "vitest";
import { failureOf } from "./follow.ts";
import { shortReason } from "./short-reason.ts";

const condition = (words: string) => ({
  type: "Running" as const,
  reason: "DeploymentFailed" as const,
  message:
    "Deployment dice failed: container function: CrashLoopBackOff (out of memory, its limit is 128Mi: " +
    `choose a larger profile in spec.resourceConfiguration.function or in spry.yaml)${words}`,
});
const fn = {
  metadata: { name: "dice", namespace: "shop" },
  spec: { runtime: "nodejs24", source: {} },
  status: { revision: 1 },
};

test("of a Function that had too little memory, the limit and what raises it are named first", () => {
  expect(shortReason(condition("").message)).toBe("out of memory, its limit is 128Mi");
  const { message, wayOut } = failureOf(fn, condition(": reading\nall"), 2);
  expect(message).toBe(
    "version 2 of dice failed: out of memory, its limit is 128Mi; version 1 still serves\n  reading\n  all",
  );
  expect(wayOut).toMatch(
    /^choose a larger profile in spec\.resourceConfiguration\.function or in spry\.yaml; spry logs /,
  );
});
