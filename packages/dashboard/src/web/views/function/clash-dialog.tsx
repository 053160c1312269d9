import { useState } from "preact/hooks";
import { type Desired, desiredOf } from "../../state/changes.ts";
import { type Clashing, type Draft } from "../../state/drafts.ts";
import { mergeThreeWays, pathKey, shownPath } from "../../state/merge.ts";
import { Dialog } from "../../ui/basics.tsx";
import { Diff } from "../../ui/diff.tsx";

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
  /** By path: whether the value is theirs. */
  const [chosen, setChosen] = useState<ReadonlyMap<string, boolean>>(new Map());
  const choose = (path: string, isTheirs: boolean) =>
    setChosen(new Map([...chosen, [path, isTheirs]]));
  const apply = () => {
    const taken = [...chosen].filter(([, isTheirs]) => isTheirs).map(([path]) => path);
    const { merged } = mergeThreeWays(draft.base, draft.edited, desiredOf(theirs), new Set(taken));
    onChoose(merged);
  };
  return (
    <Dialog
      kind="wide"
      title="Another user has changed the same fields"
      leave="Back to editing"
      onClose={onClose}
      actions={
        <button
          type="button"
          class="primary"
          disabled={clashes.some(({ path }) => !chosen.has(pathKey(path)))}
          onClick={apply}
        >
          Apply
        </button>
      }
    >
      <p class="muted">
        Nothing has been written yet. Choose one of the values for each of these; all other changes,
        yours and theirs, stay in any case.
      </p>
      {clashes.map(({ path, mine, theirs }) => {
        const name = shownPath(path);
        const key = pathKey(path);
        const choice = (word: string, isTheirs: boolean) => (
          <label class="row">
            <input
              type="radio"
              name={key}
              checked={chosen.get(key) === isTheirs}
              onChange={() => choose(key, isTheirs)}
            />
            {word}
          </label>
        );
        return (
          <section key={key} class="stack tight">
            <h3 class="mono">{name}</h3>
            <div class="row wrap" role="radiogroup" aria-label={name}>
              {choice("mine", false)}
              {choice("theirs", true)}
              <span class="muted">from theirs (−) to mine (+):</span>
            </div>
            <Diff label={`Difference of ${name}`} before={textOf(theirs)} after={textOf(mine)} />
          </section>
        );
      })}
    </Dialog>
  );
}

const textOf = (value: unknown): string =>
  typeof value === "string"
    ? value
    : value === undefined
      ? "(not set)"
      : JSON.stringify(value, null, 2);
