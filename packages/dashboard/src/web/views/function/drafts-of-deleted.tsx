import { type Function } from "@spry/function/browser";
import { navigate, paths } from "../../router.ts";
import { discardDraft, type Draft, draftsOfDeleted, rebase } from "../../state/drafts.ts";
import { keepNew } from "../../state/new-function.ts";
import { Offer } from "../../ui/offer.tsx";
import { textOf } from "./drafts-elsewhere.tsx";

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
  const drafts = draftsOfDeleted(namespace, name, fn?.metadata.uid);
  const createAgain = (draft: Draft) => {
    keepNew({ name, namespace, template: "", desired: draft.edited });
    navigate(paths.create(namespace));
  };
  return (
    <>
      {drafts.map((draft) => (
        <Offer
          key={draft.uid}
          title={`${name} was deleted while it had changes that were not applied`}
          text={textOf(draft)}
          use={fn ? `Use it for the present ${name}` : "Create it again with these changes"}
          onUse={() => {
            if (fn) rebase(fn, draft.edited);
            else createAgain(draft);
            discardDraft(draft.uid);
          }}
          onDiscard={() => discardDraft(draft.uid)}
        />
      ))}
    </>
  );
}
