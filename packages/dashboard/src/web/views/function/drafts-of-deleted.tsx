import { useState } from "preact/hooks";
import { type Function } from "@spry/function/browser";
import { navigate, paths } from "../../router.ts";
import { discardDraft, type Draft, draftsOfDeleted, rebase } from "../../state/drafts.ts";
import { keepNew } from "../../state/new-function.ts";
import { CopyButton, Problem } from "../../ui/basics.tsx";

/** What was typed for a Function that has been deleted since, perhaps to be made again: it is kept as text, and never applied by itself. */
export function DraftsOfDeleted({
  namespace,
  name,
  fn,
}: {
  namespace: string;
  name: string;
  /** The Function that has the name now. */
  fn?: Function;
}) {
  const [, showAgain] = useState(0);
  const drafts = draftsOfDeleted(namespace, name, fn?.metadata.uid);
  const forget = (draft: Draft) => {
    discardDraft(draft.uid);
    showAgain((count) => count + 1);
  };
  const createAgain = (draft: Draft) => {
    keepNew({ name, namespace, template: "", desired: draft.edited });
    forget(draft);
    navigate(paths.create(namespace));
  };
  return (
    <>
      {drafts.map((draft) => (
        <Problem
          key={draft.uid}
          tone="warn"
          title={`${name} was deleted while it had changes that were not applied`}
        >
          <details>
            <summary>What was typed</summary>
            <pre tabIndex={0}>{textOf(draft)}</pre>
          </details>
          <p class="row wrap">
            <CopyButton text={textOf(draft)} label="Copy what was typed" />
            {fn ? (
              <button
                type="button"
                onClick={() => {
                  rebase(fn, draft.edited);
                  forget(draft);
                }}
              >
                Use it for the present {name}
              </button>
            ) : (
              <button type="button" onClick={() => createAgain(draft)}>
                Create it again with these changes
              </button>
            )}
            <button type="button" class="danger" onClick={() => forget(draft)}>
              Discard
            </button>
          </p>
        </Problem>
      ))}
    </>
  );
}

const textOf = ({ edited, yaml }: Draft): string =>
  yaml ?? edited.spec.source.inline?.source ?? JSON.stringify(edited, null, 2);
