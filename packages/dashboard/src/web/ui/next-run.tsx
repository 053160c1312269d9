import { type FunctionSchedule } from "@spry/function/browser";
import { nextRunOf } from "../state/next-run.ts";
import { Until } from "./basics.tsx";

/** When a schedule is due next. */
export function NextRun({ schedule }: { schedule: FunctionSchedule }) {
  const next = nextRunOf(schedule);
  if (!next) return <span class="muted">{schedule.suspend ? "suspended" : "never"}</span>;
  return <Until time={next} />;
}
