import { isConditionTrue, type Job, type UnknownObject } from "@spry/kube";
import { ageColumn, column, type Column, integer, wide } from "../../table/column.ts";
import { humanDuration, since } from "../../table/duration.ts";
import { selectorText } from "../../table/fields.ts";
import {
  containerColumns,
  names,
  selectorColumn,
  type Templated,
} from "../workload/template-columns.ts";

interface Scheduled {
  spec?: { jobTemplate?: { spec?: Templated["spec"] } };
}

/** The same, and the selector, of the Jobs that a CronJob makes. */
const jobTemplateColumns: Column[] = [
  column<Scheduled>(
    "Containers",
    ({ spec }) => names(spec?.jobTemplate?.spec?.template?.spec?.containers, "name"),
    wide,
  ),
  column<Scheduled>(
    "Images",
    ({ spec }) => names(spec?.jobTemplate?.spec?.template?.spec?.containers, "image"),
    wide,
  ),
  column<Scheduled>(
    "Selector",
    ({ spec }) => selectorText(spec?.jobTemplate?.spec?.selector),
    wide,
  ),
];

export const jobColumns: Column[] = [
  column<Job>("Status", jobStatus),
  column<Job>("Completions", completions),
  column<Job>("Duration", duration),
  ageColumn,
  ...containerColumns,
  selectorColumn,
];

export const cronJobColumns: Column[] = [
  column("Schedule", ({ spec }: UnknownObject) => (spec as { schedule?: string }).schedule),
  column("Timezone", ({ spec }: UnknownObject) => (spec as { timeZone?: string }).timeZone),
  column(
    "Suspend",
    ({ spec }: UnknownObject) => ((spec as { suspend?: boolean }).suspend ? "True" : "False"),
    { type: "boolean" },
  ),
  column(
    "Active",
    ({ status }: UnknownObject) => (status as { active?: [] } | undefined)?.active?.length ?? 0,
    integer,
  ),
  column("Last Schedule", ({ status }: UnknownObject) => {
    const last = (status as { lastScheduleTime?: string } | undefined)?.lastScheduleTime;
    return last && since(last);
  }),
  ageColumn,
  ...jobTemplateColumns,
];

function jobStatus({ spec, status, metadata }: Job): string {
  const is = (type: string) => isConditionTrue(status?.conditions as never, type);
  if (is("Complete")) return "Complete";
  if (is("Failed")) return "Failed";
  if (metadata.deletionTimestamp) return "Terminating";
  if (is("Suspended") || spec?.suspend) return "Suspended";
  if (is("FailureTarget")) return "FailureTarget";
  return is("SuccessCriteriaMet") ? "SuccessCriteriaMet" : "Running";
}

function completions({ spec, status }: Job): string {
  const succeeded = status?.succeeded ?? 0;
  if (spec?.completions !== undefined) return `${succeeded}/${spec.completions}`;
  const parallelism = spec?.parallelism ?? 1;
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`;
}

function duration({ status }: Job): string {
  if (!status?.startTime) return "";
  const end = status.completionTime ? Date.parse(status.completionTime) : Date.now();
  return humanDuration(end - Date.parse(status.startTime));
}
