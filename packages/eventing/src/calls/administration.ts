import { functions } from "@spry/function";
import { type Clock, isNotFound, type KubeClient, type ObjectKey } from "@spry/kube";
import { type Queue } from "@spry/queue";
import { isoTime, keptSchedule, schedulesOf, submitRun } from "../schedules/submit-run.ts";
import { consumerOfCalls } from "./call.ts";
import { cancelCall } from "./cancel.ts";
import { type CallRunner } from "./runner.ts";
import { type CallSubmitter } from "./submit.ts";

/** What an administrator does to calls, in any of the processes that have the queue. */
export interface CallAdministration {
  /** Whether there was anything to cancel. */
  cancel(queue: Queue, namespace: string, id: string): Promise<boolean>;
  /** Starts one run of a Function's schedule; resolves with the call's id, or undefined without such a schedule. */
  run(queue: Queue, key: ObjectKey, schedule: string): Promise<string | undefined>;
}

export function administerCalls(deps: {
  client: KubeClient;
  submitter: CallSubmitter;
  /** Undefined where another process makes the calls. */
  runner: () => CallRunner | undefined;
  clock: Clock;
}): CallAdministration {
  const { client, submitter, runner, clock } = deps;
  return {
    cancel: (queue, namespace, id) =>
      runner()?.cancel(namespace, id) ?? cancelCall(queue, clock, { namespace, id }),
    async run(queue, key, name) {
      const [namespace = "", fn = ""] = key.split("/");
      const found = await client.get(functions, { namespace, name: fn }).catch(unlessMissing);
      const schedule = schedulesOf(found).find((each) => each.name === name);
      if (!schedule) return undefined;
      const making = runner();
      if (making) await making.ensure(key);
      else await queue.consumer(...consumerOfCalls(key));
      const now = clock.now();
      // Runs that are due are not done with by it.
      const known = await keptSchedule(queue, `${key}/${schedule.name}`);
      const kept = known ?? { seenUpTo: isoTime(now) };
      return submitRun({ queue, submitter }, key, schedule, { due: now, now, kept });
    },
  };
}

function unlessMissing(error: unknown): undefined {
  if (isNotFound(error)) return undefined;
  throw error;
}
