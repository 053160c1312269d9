import { useMemo } from "preact/hooks";
import { isServedOnDemand } from "@spry/function/browser";
import { Empty, Problem } from "../../ui/basics.tsx";
import { LogView } from "../../ui/log-view.tsx";
import { LastErrors } from "./last-errors.tsx";
import { PodTable } from "./pod-table.tsx";
import { type TabProps } from "./tab-props.ts";

/** The Pods, and the output of all of them. */
export function LogsTab({ fn, pods, podsProblem }: TabProps) {
  const sorted = useMemo(
    () => [...pods].sort((a, b) => ((a.metadata.name ?? "") < (b.metadata.name ?? "") ? -1 : 1)),
    [pods],
  );
  if (podsProblem)
    return <Problem tone="warn" title="The Pods cannot be seen" text={podsProblem} />;
  if (pods.length === 0) {
    return (
      <Empty title="No Pods, so no output">
        {isServedOnDemand(fn.spec)
          ? "The Function has no Pods without requests. Send one, and its output appears here."
          : "The output of the Function’s Pods appears here, all of them together, once they run."}
      </Empty>
    );
  }
  return (
    <div class="stack">
      <PodTable pods={sorted} />
      <LogView
        pods={sorted}
        label={`Output of ${fn.metadata.name}`}
        above={(lines) => <LastErrors fn={fn} lines={lines} />}
      />
    </div>
  );
}
