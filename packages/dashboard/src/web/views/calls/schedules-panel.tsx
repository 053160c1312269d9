import { messageOf } from "@spry/kube/browser";
import {
  type Call,
  type Function,
  functions as resource,
  type FunctionSchedule,
} from "@spry/function/browser";
import { client } from "../../api/client.ts";
import { paths } from "../../router.ts";
import { runSchedule, toneOfCall } from "../../state/calls-admin.ts";
import { may } from "../../state/rights.ts";
import { Age, Empty, State } from "../../ui/basics.tsx";
import { NextRun } from "../../ui/next-run.tsx";
import { Table } from "../../ui/table.tsx";
import { toast } from "../../ui/toasts.tsx";
import { eventingGroup } from "../events/subscriptions-view.tsx";

interface Name {
  namespace: string;
  name: string;
}

/** When Functions are called by themselves. A schedule is suspended, resumed, and run at once here; the Function's settings have the rest. */
export function SchedulesPanel({
  functions,
  calls,
  onRun,
}: {
  functions: readonly Function[];
  /** The newest first. */
  calls: readonly { namespace: string; call: Call }[];
  /** A run has been started. */
  onRun: () => void;
}) {
  const rows = functions.flatMap(({ metadata, spec }) =>
    (spec.schedules ?? []).map((schedule) => ({
      target: { namespace: metadata.namespace ?? "", name: metadata.name ?? "" },
      schedule,
    })),
  );
  const run = async (target: Name, schedule: string) => {
    try {
      await runSchedule(target, schedule);
      toast("good", `${schedule} of ${target.name} has been started.`);
      onRun();
    } catch (error) {
      toast("bad", `${schedule} was not started: ${messageOf(error)}`);
    }
  };
  return (
    <section class="panel">
      <div class="head">
        <h2>Schedules</h2>
      </div>
      {rows.length === 0 ? (
        <Empty title="No schedules">
          A schedule calls a Function at certain times, such as <code>0 3 * * *</code>. It is part
          of the Function: add one in its settings.
        </Empty>
      ) : (
        <Table heads={["Function", "Schedule", "When", "Next run", "Last run", "State", ""]}>
          {rows.map(({ target, schedule }) => {
            const { namespace, name } = target;
            const last = calls.find(
              (each) =>
                each.namespace === namespace &&
                each.call.function === name &&
                each.call.schedule?.name === schedule.name,
            );
            return (
              <tr key={`${namespace}/${name}/${schedule.name}`}>
                <td>
                  <a href={paths.fn(namespace, name, "settings")}>
                    {namespace}/{name}
                  </a>
                </td>
                <td>{schedule.name}</td>
                <td>
                  <span class="mono">{schedule.cron}</span>{" "}
                  <span class="muted">{schedule.timeZone ?? "UTC"}</span>
                </td>
                <td class="nowrap">
                  <NextRun schedule={schedule} />
                </td>
                <td class="nowrap">
                  {last ? (
                    <State tone={toneOfCall(last.call.state)}>
                      {last.call.state} <Age time={last.call.endedAt ?? last.call.acceptedAt} /> ago
                    </State>
                  ) : (
                    <span class="muted" title="Runs are kept for a day.">
                      none kept
                    </span>
                  )}
                </td>
                <td>
                  <State tone={schedule.suspend ? "warn" : "good"}>
                    {schedule.suspend ? "suspended" : "active"}
                  </State>
                </td>
                <td class="nowrap">
                  {may(namespace, "create", "calls", eventingGroup) && (
                    <button
                      type="button"
                      class="small"
                      onClick={() => void run(target, schedule.name)}
                    >
                      Run now
                    </button>
                  )}{" "}
                  {may(namespace, "patch", "functions") && (
                    <button
                      type="button"
                      class="small"
                      onClick={() => void suspend(target, schedule, !schedule.suspend)}
                    >
                      {schedule.suspend ? "Resume" : "Suspend"}
                    </button>
                  )}
                </td>
              </tr>
            );
          })}
        </Table>
      )}
    </section>
  );
}

/** On the object as it is now: a patch of a list replaces all of it. */
async function suspend(
  target: Name,
  { name }: FunctionSchedule,
  suspended: boolean,
): Promise<void> {
  try {
    const { metadata, spec } = await client.get<Function>(resource, target);
    const schedules = (spec.schedules ?? []).map((each) =>
      each.name === name ? { ...each, suspend: suspended } : each,
    );
    const { resourceVersion = "" } = metadata;
    await client.patch(resource, target, { metadata: { resourceVersion }, spec: { schedules } });
    toast("good", `${name} of ${target.name} is ${suspended ? "suspended" : "active again"}.`);
  } catch (error) {
    toast("bad", `${name} was not changed: ${messageOf(error)}`);
  }
}
