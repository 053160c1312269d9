import { labels } from "@spry/function/browser";
import { resources } from "@spry/kube/browser";
import { useLive } from "../api/live.ts";
import { paths, query } from "../router.ts";
import { Age, Empty } from "../ui/basics.tsx";
import { TableView } from "../ui/table-view.tsx";
import { durationOf, jobState, JobState } from "./function/builds-tab.tsx";

const maxShown = 200;

/** Builds of all Functions: what runs, what waits, what has failed. */
export function BuildsView() {
  const namespace = query.value.get("ns") ?? undefined;
  const live = useLive(resources.jobs, {
    namespace,
    labelSelector: labels.functionName,
  });
  const jobs = [...live.items.value].sort((a, b) =>
    (a.metadata.creationTimestamp ?? "") < (b.metadata.creationTimestamp ?? "") ? 1 : -1,
  );
  const count = (word: string) => jobs.filter((job) => jobState(job).word === word).length;
  return (
    <TableView
      title="Builds"
      namespace={namespace}
      note={
        <span class="muted">
          {live.isReady.value &&
            `${count("running")} running, ${count("waiting")} waiting, ${count("failed")} failed`}
        </span>
      }
      live={live}
      problemTitle="Builds cannot be listed"
      empty={
        <Empty title="No builds to show">
          A change of a Function’s code or packages is built into an image by a Job. Jobs are
          removed some time after they have ended.
        </Empty>
      }
      heads={["Function", "State", "Took", "Begun", "Job"]}
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
