import { labels } from "@spry/function/browser";
import { resources } from "@spry/kube/browser";
import { useLive } from "../api/live.ts";
import { paths, query, setQuery } from "../router.ts";
import { Age, Empty, Problem } from "../ui/basics.tsx";
import { Frame } from "../ui/frame.tsx";
import { NamespaceChoice } from "../ui/namespace-choice.tsx";
import { durationOf, jobState, JobState } from "./function/builds-tab.tsx";

const maxShown = 200;

/** Builds of all Functions: what runs, what waits, what has failed. */
export function BuildsView() {
  const namespace = query.value.get("ns") ?? undefined;
  const { items, isReady, problem } = useLive(resources.jobs, {
    namespace,
    labelSelector: labels.functionName,
  });
  const jobs = [...items.value].sort((a, b) =>
    (a.metadata.creationTimestamp ?? "") < (b.metadata.creationTimestamp ?? "") ? 1 : -1,
  );
  const count = (word: string) => jobs.filter((job) => jobState(job).word === word).length;
  return (
    <Frame title="Builds">
      <div class="toolbar">
        <NamespaceChoice value={namespace} hasAll onChange={(ns) => setQuery({ ns })} />
        <span class="muted">
          {isReady.value &&
            `${count("running")} running, ${count("waiting")} waiting, ${count("failed")} failed`}
        </span>
      </div>
      {problem.value && !isReady.value && (
        <Problem title="Builds cannot be listed" text={problem.value} />
      )}
      {isReady.value && jobs.length === 0 && (
        <Empty title="No builds to show">
          A change of a Function’s code or packages is built into an image by a Job. Jobs that are
          long over are removed.
        </Empty>
      )}
      {jobs.length > 0 && (
        <div class="panel scroll-x" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th>Function</th>
                <th>State</th>
                <th>Took</th>
                <th>Begun</th>
                <th>Job</th>
              </tr>
            </thead>
            <tbody>
              {jobs.slice(0, maxShown).map((job) => {
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
            </tbody>
          </table>
        </div>
      )}
    </Frame>
  );
}
