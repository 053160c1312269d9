import {
  isBegun,
  keepNew,
  newFunction,
  newName,
  type NewFunction,
} from "../../state/new-function.ts";
import { takeFrom, typedElsewhere } from "../../state/typed.ts";
import { Age } from "../../ui/basics.tsx";
import { Offer } from "../../ui/offer.tsx";
import { toast } from "../../ui/toasts.tsx";
import { useOpenTabs } from "../../ui/use-open-tabs.ts";

/** New Functions that the user has begun in tabs that have been closed since. */
export function NewElsewhere() {
  const found = typedElsewhere(newName).filter(({ value }) => isBegun(value as NewFunction));
  const open = useOpenTabs(found);
  if (!open) return null;
  const use = (at: (typeof found)[number]) => {
    const before = newFunction.value;
    keepNew(at.value as NewFunction);
    if (!before || !isBegun(before)) return void takeFrom(at);
    toast("idle", "What you had typed was replaced.", {
      label: "Undo",
      run: () => keepNew(before),
    });
  };
  return (
    <>
      {found
        .filter(({ tab }) => !open.has(tab))
        .map((at) => {
          const { name, yaml, desired } = at.value as NewFunction;
          return (
            <Offer
              key={at.tab}
              title={`Another tab has begun a Function${name && ` ${name}`} that was not created`}
              text={yaml ?? desired.spec.source.inline?.source ?? JSON.stringify(desired, null, 2)}
              use="Continue with it here"
              onUse={() => use(at)}
              onDiscard={() => void takeFrom(at)}
            >
              <p class="muted">
                Typed <Age time={new Date(at.saved).toISOString()} /> ago.
              </p>
            </Offer>
          );
        })}
    </>
  );
}
