import { useMemo, useState } from "preact/hooks";
import { functionRevisions, labels, type RegistryUsage } from "@spry/function/browser";
import { messageOf } from "@spry/kube/browser";
import { adminJson } from "../api/admin.ts";
import { useLive } from "../api/live.ts";
import { paths, query, setQuery } from "../router.ts";
import { info } from "../state/info.ts";
import { fitted } from "../state/shape.ts";
import {
  bytesText,
  knownRepositories,
  reportedRepositories,
  type ShownRepository,
} from "../state/registry.ts";
import { Age, Empty, Problem } from "../ui/basics.tsx";
import { Frame } from "../ui/frame.tsx";
import { NamespaceChoice } from "../ui/namespace-choice.tsx";
import { Table } from "../ui/table.tsx";
import { usePolled } from "../ui/use-polled.ts";

const usageShape = {
  "stored!": "number",
  "quota!": "number",
  "previousImages!": "number",
  "cacheMaxAgeMs!": "number",
  "repositories!": [
    {
      "name!": "text",
      "kind!": "text",
      "bytes!": "number",
      "images!": [{ "digest!": "text", "bytes!": "number", "usedAt!": "text", reason: "any" }],
      "imageCount!": "number",
    },
  ],
} as const;
const pollMs = 10_000;

/** Which images the registry keeps for which Function, why, and how much room they take. */
export function RegistryView() {
  const namespace = query.value.get("ns") ?? undefined;
  const revisions = useLive(functionRevisions, {
    namespace,
    labelSelector: labels.functionName,
  });
  const [problem, setProblem] = useState("");
  const load = async () => {
    try {
      const of = namespace === undefined ? "" : `?ns=${namespace}`;
      const usage = fitted<RegistryUsage>(usageShape, await adminJson(`/registry-usage${of}`));
      setProblem("");
      return usage;
    } catch (error) {
      setProblem(messageOf(error));
      throw error;
    }
  };
  const reports = info.value?.hasRegistry === true;
  const { value: usage } = usePolled(reports ? (namespace ?? "*") : "", load, pollMs);
  const items = revisions.items.value;
  // Without a report, what the API server knows is better than nothing.
  const isKnown = !reports || (problem !== "" && usage === undefined);
  const repositories = useMemo(
    () => (usage ? reportedRepositories(usage, items) : isKnown ? knownRepositories(items) : []),
    [usage, items, isKnown],
  );
  const isReady = isKnown ? revisions.isReady.value : usage !== undefined;
  const refused = problem || (isKnown && !isReady ? revisions.problem.value : "");
  return (
    <Frame title="Registry">
      <div class="toolbar">
        <NamespaceChoice value={namespace} hasAll onChange={(ns) => setQuery({ ns })} />
        {usage && <Room usage={usage} />}
      </div>
      {refused && (!isReady || repositories.length === 0) && (
        <Problem title="The registry’s images cannot be shown" text={refused} />
      )}
      {isReady && !refused && repositories.length === 0 && (
        <Empty title="No images yet">
          Each build of a Function makes an image, which is kept here: nodes start Pods from it, and
          a rollback needs no new build. What nothing refers to any more is removed by itself.
        </Empty>
      )}
      {isReady && isKnown && repositories.length > 0 && (
        <p class="muted">
          These are the images of the Functions’ histories. Sizes, and what else the registry has,
          are known to the registry only.
        </p>
      )}
      <Repositories repositories={repositories} hasSizes={!isKnown} />
    </Frame>
  );
}

function Room({ usage: { stored, quota } }: { usage: RegistryUsage }) {
  return (
    <span class="row nowrap">
      <meter
        min={0}
        max={quota}
        high={quota * 0.8}
        value={stored}
        aria-label="Space used in the registry"
      />
      <span class="muted">
        {bytesText(stored)} of {bytesText(quota)}
      </span>
    </span>
  );
}

function Repositories({
  repositories,
  hasSizes,
}: {
  repositories: ShownRepository[];
  hasSizes: boolean;
}) {
  return (
    <div class="stack">
      {repositories.map((each) => (
        <section key={each.name} class="panel aligned" aria-label={each.name}>
          <div class="head">
            <h2 class="clip">
              {each.owner ? (
                <a href={paths.fn(each.owner.namespace, each.owner.name, "history")}>{each.name}</a>
              ) : (
                each.name
              )}
            </h2>
            <span class="muted">
              {each.what}
              {each.bytes !== null && `, ${bytesText(each.bytes)}`}
            </span>
          </div>
          <Table heads={["Image", "Why it is kept", ...(hasSizes ? ["Size", "Last used"] : [])]}>
            {each.images.map(({ digest, bytes, usedAt, why, isGoing }) => (
              <tr key={digest}>
                <td class="mono" title={digest}>
                  {digest.slice("sha256:".length, 19)}
                </td>
                <td class={isGoing ? "muted" : ""}>{why}</td>
                {hasSizes && (
                  <>
                    <td class="nowrap">{bytes === null ? "–" : bytesText(bytes)}</td>
                    <td class="muted nowrap">
                      <Age time={usedAt} /> ago
                    </td>
                  </>
                )}
              </tr>
            ))}
          </Table>
          {each.more > 0 && <p class="body muted">and {each.more} older ones</p>}
        </section>
      ))}
    </div>
  );
}
