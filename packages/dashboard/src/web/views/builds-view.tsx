import { functions, labels } from "@spry/function/browser";
import { resources } from "@spry/kube/browser";
import { useLive } from "../api/live.ts";
import { paths, query } from "../router.ts";
import { buildLimitOf, buildQueue, buildsText, type WaitingBuild } from "../state/build-queue.ts";
import { listedFunctions } from "../state/listed-functions.ts";
import { Age, Empty } from "../ui/basics.tsx";
import { Table } from "../ui/table.tsx";
import { TableView } from "../ui/table-view.tsx";
import { durationOf, JobState } from "./function/builds-tab.tsx";

const maxShown = 200;

/** Builds of all Functions: what runs, what waits for a slot, what has failed. */
export function BuildsView() {
  const namespace = query.value.get("ns") ?? undefined;
  const live = useLive(resources.jobs, {
    namespace,
    labelSelector: labels.functionName,
  });
  const all = useLive(functions, { namespace, keep: listedFunctions }).items.value;
  const jobs = [...live.items.value].sort((a, b) =>
    (a.metadata.creationTimestamp ?? "") < (b.metadata.creationTimestamp ?? "") ? 1 : -1,
  );
  const queue = buildQueue(all, jobs);
  return (
    <TableView
      title="Builds"
      namespace={namespace}
      note={
        <>
          <span class="muted" role="status">
            {live.isReady.value && buildsText(jobs, queue)}
          </span>
          <a href="/registry">Images in the registry</a>
        </>
      }
      above={queue.length > 0 && <Queue queue={queue} limit={buildLimitOf(all)} />}
      live={live}
      problemTitle="Builds cannot be listed"
      empty={
        <Empty title="No builds to show">
          A change of a Function’s code or packages is built into an image by a Job. Jobs are
          removed some time after they have ended.
        </Empty>
      }
      heads={["Function", "State", "Took", "Started", "Job"]}
      rows={jobs.slice(0, maxShown).map((job) => {
        const name = job.metadata.labels?.[labels.functionName] ?? "";
        const inNamespace = job.metadata.namespace ?? "";
        return (
          <tr key={job.metadata.uid}>
            <td>
              <a href={paths.fn(inNamespace, name, "builds")}>
                {inNamespace}/{name}
              </a>
            </td>
            <td>
              <JobState job={job} />
            </td>
            <td>{durationOf(job)}</td>
            <td class="muted nowrap">
              <Age time={job.metadata.creationTimestamp} /> ago
            </td>
            <td class="mono muted">{job.metadata.name}</td>
          </tr>
        );
      })}
    />
  );
}

/** Who waits, the next first. */
function Queue({ queue, limit }: { queue: WaitingBuild[]; limit: number | undefined }) {
  return (
    <section class="panel" aria-label="Waiting for a slot">
      <div class="head">
        <h2>Waiting for a slot</h2>
        <span class="muted">
          {limit !== undefined &&
            `${limit === 1 ? "One build runs" : `At most ${limit} builds run`} at a time. `}
          Namespaces take turns.
        </span>
      </div>
      <Table heads={["Position", "Function", "Waiting for"]}>
        {queue.slice(0, maxShown).map(({ namespace, name, since }, index) => (
          <tr key={`${namespace}/${name}`}>
            <td>
              <strong>{index + 1}</strong>
            </td>
            <td>
              <a href={paths.fn(namespace, name)}>
                {namespace}/{name}
              </a>
            </td>
            <td class="muted">
              <Age time={since} />
            </td>
          </tr>
        ))}
      </Table>
      <p class="body muted">
        Until its build has ended, each of them answers with its former version. The limit is{" "}
        <code>functionBuildMaxSimultaneousJobs</code> in the <a href="/settings">settings</a>.
      </p>
    </section>
  );
}
