import { type Function } from "@spry/function/browser";
import { type Draft, draftOf, draftsElsewhere, keepDraft } from "../../state/drafts.ts";
import { takeFrom } from "../../state/typed.ts";
import { Age } from "../../ui/basics.tsx";
import { Offer } from "../../ui/offer.tsx";
import { toast } from "../../ui/toasts.tsx";
import { useOpenTabs } from "../../ui/use-open-tabs.ts";

/** What the user has typed for this Function in other tabs, open ones and closed ones. */
export function DraftsElsewhere({ fn }: { fn: Function }) {
  const found = draftsElsewhere(fn);
  const open = useOpenTabs(found.map(({ at }) => at));
  if (!open) return null;
  const use = ({ draft, at }: (typeof found)[number]) => {
    const own = draftOf(fn).value;
    keepDraft(fn, draft);
    // Where it replaces something, Undo leaves both as they were.
    if (!own) return void takeFrom(at);
    toast("idle", "The changes of the other tab have replaced those of this one.", {
      label: "Undo",
      run: () => keepDraft(fn, own),
    });
  };
  return (
    <>
      {found.map((each) => (
        <Offer
          key={each.at.tab}
          title={`Another tab has changes of ${fn.metadata.name} that are not applied`}
          text={textOf(each.draft)}
          use={draftOf(fn).value ? "Use them instead of those here" : "Continue with them here"}
          onUse={() => use(each)}
          onDiscard={open.has(each.at.tab) ? undefined : () => void takeFrom(each.at)}
        >
          <p class="muted">
            Typed <Age time={new Date(each.at.saved).toISOString()} /> ago, in a tab that is{" "}
            {open.has(each.at.tab) ? "still open" : "closed"}.
          </p>
        </Offer>
      ))}
    </>
  );
}

export const textOf = ({ edited, yaml }: Draft): string =>
  yaml ?? edited.spec.source.inline?.source ?? JSON.stringify(edited, null, 2);
