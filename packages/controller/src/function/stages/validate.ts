import { runtimeOf, validateFunction } from "@spry/function";
import { baseImageOf } from "../../build/build-job.ts";
import { done, type Stage } from "../stage.ts";

/** Refuses what admission would have refused, for clusters where it does not run. */
export const validate: Stage = {
  name: "validate",
  condition: "ConfigurationReady",

  async run({ fn, status }, { settings }) {
    const problems = validateFunction(fn).map((error) => error.message);
    if (problems.length === 0 && !baseImageOf(fn, settings)) {
      const available = Object.keys(settings.runtimeImages).join(", ");
      const runtime = runtimeOf(fn).name;
      problems.push(
        `runtime ${runtime} is not installed on this platform: use one of ${available}`,
      );
    }
    if (problems.length === 0) {
      status.runtime = fn.spec.runtime ?? "";
      status.runtimeImage = baseImageOf(fn, settings) ?? "";
      return done;
    }
    return { kind: "stop", reason: "InvalidFunctionSpec", message: problems.join(". ") };
  },
};
