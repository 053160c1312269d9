import { useState } from "preact/hooks";
import {
  type Desired,
  desiredOf,
  mergeChanges,
  shownPath,
  withTheirs,
} from "../../state/changes.ts";
import { type Clashing, type Draft } from "../../state/drafts.ts";
import { Dialog } from "../../ui/basics.tsx";
import { later } from "../../ui/later.tsx";

const Diff = later(async () => (await import("../../ui/diff.tsx")).Diff);

/** Two users have changed the same fields: the user chooses a value for each. All other changes of both stay. */
export function ClashDialog({
  draft,
  clash: { clashes, theirs },
  onClose,
  onChoose,
}: {
  draft: Draft;
  clash: Clashing;
  onClose: () => void;
  onChoose: (edited: Desired) => void;
}) {
  const [taken, setTaken] = useState<ReadonlySet<string>>(new Set());
  const choose = (path: string, isTheirs: boolean) => {
    const next = new Set(taken);
    if (isTheirs) next.add(path);
    else next.delete(path);
    setTaken(next);
  };
  const apply = () => {
    const { merged } = mergeChanges(draft.base, draft.edited, desiredOf(theirs));
    onChoose(
      withTheirs(
        merged,
        clashes.filter(({ path }) => taken.has(path)),
      ),
    );
  };
  return (
    <Dialog
      kind="wide"
      title="Another user has changed the same fields"
      leave="Back to editing"
      onClose={onClose}
      actions={
        <button type="button" class="primary" onClick={apply}>
          Apply
        </button>
      }
    >
      <p class="muted">
        Nothing has been written yet. Their changes of other fields stay in any case.
      </p>
      {clashes.map(({ path, mine, theirs }) => (
        <section key={path} class="stack tight">
          <h3 class="mono">{shownPath(path)}</h3>
          <div class="row wrap" role="radiogroup" aria-label={shownPath(path)}>
            <label class="row">
              <input
                type="radio"
                name={path}
                checked={!taken.has(path)}
                onChange={() => choose(path, false)}
              />
              mine
            </label>
            <label class="row">
              <input
                type="radio"
                name={path}
                checked={taken.has(path)}
                onChange={() => choose(path, true)}
              />
              theirs
            </label>
            <span class="muted">from theirs (−) to mine (+):</span>
          </div>
          <Diff
            label={`Difference of ${shownPath(path)}`}
            before={textOf(theirs)}
            after={textOf(mine)}
          />
        </section>
      ))}
    </Dialog>
  );
}

const textOf = (value: unknown): string =>
  typeof value === "string"
    ? value
    : value === undefined
      ? "(not set)"
      : JSON.stringify(value, null, 2);
