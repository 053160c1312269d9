import { type Function } from "@spry/function/browser";
import { paths } from "../../router.ts";
import { problemOf } from "../../state/function-state.ts";
import { placeIn, readable } from "../../state/place-in-code.ts";
import { Problem } from "../../ui/basics.tsx";

/** Why a Function does not run what is desired, and how to fix it. */
export function ConditionProblem({ fn }: { fn: Function }) {
  const problem = problemOf(fn);
  if (!problem) return null;
  const { namespace = "", name = "" } = fn.metadata;
  const serving = fn.status?.revision;
  const titles: Record<string, string> = {
    ConfigurationReady: "The source or the settings are not valid",
    BuildReady: "The build failed",
    Running: "The new version does not run",
  };
  const place = placeIn(problem.message);
  return (
    <Problem
      title={`${titles[problem.type] ?? problem.type}${serving === undefined ? "" : `; version ${serving} still serves`}`}
      text={readable(problem.message)}
    >
      <p class="row wrap">
        {problem.type === "BuildReady" && (
          <a href={paths.fn(namespace, name, "builds")}>See the build’s log</a>
        )}
        {problem.type === "Running" && <a href={paths.fn(namespace, name, "logs")}>See the logs</a>}
        {place !== undefined && fn.spec.source.inline && (
          <a href={`${paths.fn(namespace, name, "code")}?line=${place.line}`}>
            Go to line {place.line} of the code
          </a>
        )}
        {serving !== undefined && (
          <a href={paths.fn(namespace, name, "history")}>Return to an earlier version</a>
        )}
      </p>
    </Problem>
  );
}
