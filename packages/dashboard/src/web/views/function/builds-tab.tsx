import { useMemo, useState } from "preact/hooks";
import { annotations, labels } from "@spry/function/browser";
import { type Job, messageOf, resources } from "@spry/kube/browser";
import { functions } from "@spry/function/browser";
import { client } from "../../api/client.ts";
import { useLive } from "../../api/live.ts";
import { type BuildState, buildStateOf } from "../../state/build-queue.ts";
import { may } from "../../state/rights.ts";
import { type Tone } from "../../state/function-state.ts";
import { Age, Empty, State } from "../../ui/basics.tsx";
import { LogView } from "../../ui/log-view.tsx";
import { Table } from "../../ui/table.tsx";
import { toast } from "../../ui/toasts.tsx";
import { type TabProps } from "./tab-props.ts";

/** Builds, newest first, and the log of one as it runs. */
export function BuildsTab({ fn }: TabProps) {
  const { namespace = "", name = "" } = fn.metadata;
  const labelSelector = `${labels.functionName}=${name}`;
  const jobs = useLive(resources.jobs, { namespace, labelSelector });
  const pods = useLive(resources.pods, { namespace, labelSelector });
  const [chosen, setChosen] = useState<string>();
  const sorted = [...jobs.items.value].sort((a, b) => timeOf(b) - timeOf(a));
  const job = sorted.find(({ metadata }) => metadata.name === chosen) ?? sorted[0];
  const jobName = job?.metadata.name;
  const ofJob = useMemo(
    () =>
      pods.items.value
        .filter(({ metadata }) => metadata.labels?.["batch.kubernetes.io/job-name"] === jobName)
        .slice(-1),
    [pods.items.value, jobName],
  );
  const rebuild = async () => {
    const patch = {
      metadata: { annotations: { [annotations.rebuild]: new Date().toISOString() } },
    };
    try {
      await client.patch(functions, { namespace, name }, patch);
      toast("good", "A build of the same source has been requested.");
    } catch (error) {
      toast("bad", `The build was not requested: ${messageOf(error)}`);
    }
  };
  const again = may(namespace, "patch", "functions") && (
    <button type="button" class="small" onClick={() => void rebuild()}>
      Build again
    </button>
  );
  if (!job) {
    return (
      <Empty
        title={
          jobs.isReady.value
            ? "No builds to show"
            : jobs.problem.value
              ? "The builds cannot be read"
              : "Loading …"
        }
        actions={again}
      >
        {jobs.problem.value ||
          "A change of code or packages is built into an image, and its log appears here. Builds are removed some time after they have ended."}
      </Empty>
    );
  }
  return (
    <div class="stack">
      <div class="panel">
        <div class="head">
          <h2>Builds</h2>
          {again}
        </div>
        <Table heads={["Build", "State", "Took", "Started"]}>
          {sorted.slice(0, 20).map((each) => (
            <tr key={each.metadata.uid}>
              <td>
                <button
                  type="button"
                  class="plain small mono"
                  aria-pressed={each === job}
                  onClick={() => setChosen(each.metadata.name)}
                >
                  {each.metadata.name}
                </button>
              </td>
              <td>
                <JobState job={each} />
              </td>
              <td>{durationOf(each)}</td>
              <td class="muted">
                <Age time={each.metadata.creationTimestamp} /> ago
              </td>
            </tr>
          ))}
        </Table>
      </div>
      <h2>Log of {jobName}</h2>
      <LogView key={jobName} pods={ofJob} label={`Log of ${jobName}`} />
    </div>
  );
}

const timeOf = ({ metadata }: Job): number => Date.parse(metadata.creationTimestamp ?? "") || 0;

const tones: Record<BuildState, Tone> = {
  failed: "bad",
  finished: "good",
  running: "busy",
  waiting: "idle",
};

export function JobState({ job }: { job: Job }) {
  const word = buildStateOf(job);
  return <State tone={tones[word]}>{word}</State>;
}

export function durationOf({ status }: Job): string {
  const begin = Date.parse(status?.startTime ?? "");
  const end = Date.parse(status?.completionTime ?? "");
  if (!begin || !end) return "";
  return `${Math.max(Math.round((end - begin) / 1000), 0)} s`;
}
