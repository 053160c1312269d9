import { useState } from "preact/hooks";
import {
  annotations,
  type FunctionRevision,
  functionRevisions,
  isServedOnDemand,
  labels,
  restoredSpec,
  revisionsOf,
  type TrafficShare,
} from "@spry/function/browser";
import { messageOf } from "@spry/kube/browser";
import { useLive } from "../../api/live.ts";
import { type Desired, desiredOf, isChanged } from "../../state/changes.ts";
import { linesOf } from "../../state/chain.ts";
import { draftOf, edit, save } from "../../state/drafts.ts";
import { problemOf } from "../../state/function-state.ts";
import { readable } from "../../state/place-in-code.ts";
import { urlOf } from "../../state/info.ts";
import { shared } from "../../state/traffic.ts";
import { may } from "../../state/rights.ts";
import { Age, Dialog, Empty, State } from "../../ui/basics.tsx";
import { later } from "../../ui/later.tsx";
import { Table } from "../../ui/table.tsx";
import { toast } from "../../ui/toasts.tsx";
import { type TabProps } from "./tab-props.ts";

const YamlDiff = later(async () => (await import("./yaml-diff.tsx")).YamlDiff);

/** What was deployed, how to return to it, and which version gets which share of the requests. */
export function HistoryTab({ fn }: TabProps) {
  const { namespace = "", name = "" } = fn.metadata;
  const live = useLive(functionRevisions, {
    namespace,
    labelSelector: `${labels.functionName}=${name}`,
  });
  const [shown, setShown] = useState<FunctionRevision>();
  const revisions = revisionsOf(fn, live.items.value);
  const readOnly = !may(namespace, "patch", "functions");
  const present = desiredOf(fn);
  if (revisions.length === 0) {
    return (
      <Empty
        title={
          live.isReady.value
            ? "No history yet"
            : live.problem.value
              ? "The history cannot be read"
              : "Loading …"
        }
      >
        {live.problem.value ||
          "Each version that is deployed is kept here: who changed what and when. One click returns to it, without a build."}
      </Empty>
    );
  }
  const rollBack = async (revision: FunctionRevision) => {
    const base = desiredOf(fn);
    const target = { namespace, name };
    try {
      const saved = await save(target, { base, edited: restored(base, revision) });
      if ("clashes" in saved) throw new Error("another user has changed it at this moment");
      toast("good", `${name} returns to version ${revision.revision}.`, {
        label: "Undo",
        run: () => void save(target, { base: restored(base, revision), edited: base }),
      });
    } catch (error) {
      toast("bad", `${name} was not rolled back: ${messageOf(error)}`);
    }
  };
  return (
    <div class="stack loose">
      <Table isPanel heads={["Version", "When", "Who", "Source", "Serves", ""]}>
        {revisions.map((revision, index) => (
          <tr key={revision.metadata.uid}>
            <td>
              <strong>{revision.revision}</strong>
            </td>
            <td class="nowrap muted">
              <Age time={revision.data.time} /> ago
            </td>
            <td>{revision.data.author ?? "–"}</td>
            <td class="mono">{sourceText(revision)}</td>
            <td>
              <Serves fn={fn} revision={revision} isNewest={index === 0} />
            </td>
            <td>
              <span class="row">
                <button type="button" class="small" onClick={() => setShown(revision)}>
                  Compare
                </button>
                {!readOnly && isChanged(present, restored(present, revision)) && (
                  <button type="button" class="small" onClick={() => void rollBack(revision)}>
                    Roll back
                  </button>
                )}
              </span>
            </td>
          </tr>
        ))}
      </Table>
      <Traffic fn={fn} revisions={revisions} readOnly={readOnly} />
      {shown && (
        <Dialog
          kind="wide"
          title={`From the present state back to version ${shown.revision}`}
          leave="Close"
          onClose={() => setShown(undefined)}
        >
          <YamlDiff
            label="Differences"
            target={{ namespace, name }}
            before={desiredOf(fn)}
            after={restored(desiredOf(fn), shown)}
          />
        </Dialog>
      )}
    </div>
  );
}

/** The same as `spry rollback`: the spec, and the annotation that requested a rebuild, because it is part of the build key. */
function restored({ metadata, spec }: Desired, { data }: FunctionRevision): Desired {
  const { [annotations.rebuild]: _rebuild, ...others } = metadata.annotations;
  const rebuild = data.rebuild === undefined ? {} : { [annotations.rebuild]: data.rebuild };
  return {
    metadata: { ...metadata, annotations: { ...others, ...rebuild } },
    spec: restoredSpec(spec, data),
  };
}

function sourceText({ data }: FunctionRevision): string {
  const { gitRepository, image, inline } = data.spec.source;
  if (gitRepository) return `${gitRepository.reference} ${data.commit?.slice(0, 8) ?? ""}`;
  if (image !== undefined) return "directory";
  return `inline, ${linesOf(inline?.source)}`;
}

function Serves({
  fn,
  revision,
  isNewest,
}: {
  fn: TabProps["fn"];
  revision: FunctionRevision;
  isNewest: boolean;
}) {
  const share = sharesOf(fn.spec.traffic)
    .filter((each) => (each.revision ?? fn.status?.revision) === revision.revision)
    .reduce((sum, { percent = 0 }) => sum + percent, 0);
  if (share > 0) return <State tone="good">serves {share} %</State>;
  const hasServed = revision.metadata.annotations?.[annotations.served] === "true";
  if (hasServed) return <span class="muted">–</span>;
  if (!isNewest) return <State tone="idle">never ready</State>;
  const failure = problemOf(fn);
  if (!failure) return <State tone="busy">not ready</State>;
  const [reason = ""] = readable(failure.message).split("\n");
  return (
    <>
      <State tone="bad">never ready</State>
      <div class="reason" title={failure.message}>
        {reason.length > maxReason ? `${reason.slice(0, maxReason)} …` : reason}
      </div>
    </>
  );
}

const maxReason = 160;

const sharesOf = (traffic: TrafficShare[] | undefined): TrafficShare[] =>
  traffic?.length ? traffic : [{ latest: true, percent: 100 }];

const labelOf = ({ revision }: TrafficShare): string =>
  revision === undefined ? "latest" : `version ${revision}`;

/** Shares of the requests as sliders: what one version gains, the others lose. */
function Traffic({
  fn,
  revisions,
  readOnly: mayNot,
}: {
  fn: TabProps["fn"];
  revisions: FunctionRevision[];
  readOnly: boolean;
}) {
  const draft = draftOf(fn).value;
  const spec = draft?.edited.spec ?? fn.spec;
  const readOnly = mayNot || draft?.yaml !== undefined;
  const shares = sharesOf(spec.traffic);
  const set = (next: TrafficShare[]) =>
    edit(fn, (edited) => {
      const { traffic: _traffic, ...rest } = edited.spec;
      const isDefault = next.length === 1 && next[0]?.latest === true;
      return { ...edited, spec: isDefault ? rest : { ...rest, traffic: next } };
    });
  const others = revisions.filter(
    ({ revision }) => !shares.some((share) => share.revision === revision),
  );
  return (
    <section class="panel">
      <div class="head">
        <h2>Traffic</h2>
        {!readOnly && others.length > 0 && (
          <select
            aria-label="Add a version to the traffic"
            value=""
            onChange={({ currentTarget }) => {
              const { value } = currentTarget;
              currentTarget.value = "";
              if (value) set([...shares, { revision: Number(value), percent: 0 }]);
            }}
          >
            <option value="">Add a version …</option>
            {others.map(({ revision }) => (
              <option key={revision} value={revision}>
                version {revision}
              </option>
            ))}
          </select>
        )}
      </div>
      <div class="body stack">
        <div class="bar" aria-hidden="true">
          {shares.map(({ percent = 0 }, index) => (
            <span key={index} style={{ width: `${percent}%` }} />
          ))}
        </div>
        {shares.map((share, index) => (
          <div class="share" key={labelOf(share)}>
            <span class="clip">
              {labelOf(share)}
              {share.tag !== undefined && (
                <>
                  {" "}
                  <a href={urlOf(fn, share.tag) ?? "#"} target="_blank" rel="noreferrer">
                    {share.tag}
                  </a>
                </>
              )}
            </span>
            <input
              type="range"
              min={0}
              max={100}
              disabled={readOnly || shares.length === 1}
              aria-label={`Share of ${labelOf(share)}`}
              value={share.percent ?? 0}
              onInput={({ currentTarget }) =>
                set(shared(shares, index, currentTarget.valueAsNumber))
              }
            />
            <span class="row">
              {share.percent ?? 0} %
              {!readOnly && shares.length > 1 && (share.percent ?? 0) === 0 && (
                <button
                  type="button"
                  class="plain small"
                  aria-label={`Take ${labelOf(share)} out of the traffic`}
                  onClick={() => set(shares.filter((_, at) => at !== index))}
                >
                  ×
                </button>
              )}
            </span>
          </div>
        ))}
        {!isServedOnDemand(fn.spec) && (
          <p class="muted">
            With more than one version in the traffic, the Function is served on demand: requests
            pass the gateway, which splits them exactly.
          </p>
        )}
      </div>
    </section>
  );
}
