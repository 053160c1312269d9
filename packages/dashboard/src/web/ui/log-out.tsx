import { signal } from "@preact/signals";
import { logOut } from "../session/login.ts";
import { isBegun, newName, type NewFunction } from "../state/new-function.ts";
import { typedAs, typedElsewhere, typedNames } from "../state/typed.ts";
import { Dialog } from "./basics.tsx";

const isAsking = signal(false);

/** Logs out at once where nothing would be lost, and asks otherwise. */
export function askToLogOut(): void {
  const own = typedNames("").map((name) => ({ name, value: typedAs<object>(name) }));
  const isUnapplied = [...own, ...typedElsewhere("")].some(
    ({ name, value }) => name !== newName || isBegun(value as NewFunction),
  );
  if (isUnapplied) isAsking.value = true;
  else logOut();
}

export function LogOutDialog() {
  if (!isAsking.value) return null;
  const close = () => (isAsking.value = false);
  return (
    <Dialog
      title="Log out and lose what is not applied?"
      leave="Cancel"
      onClose={close}
      actions={
        <button type="button" class="danger" onClick={logOut}>
          Log out
        </button>
      }
    >
      <p>
        There are changes that you have not applied. Logging out removes them, in all tabs of this
        browser, so that the next user does not see them.
      </p>
    </Dialog>
  );
}
