import { type ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { messageOf } from "@spry/kube/browser";
import { Dialog, Problem } from "./basics.tsx";

/** A dialogue with one action. When the action fails, the dialogue stays open and shows why. */
export function ActionDialog({
  title,
  verb,
  kind = "primary",
  isDisabled = false,
  failureTitle,
  onAction,
  onClose,
  children,
}: {
  title: string;
  /** The label of the action's button. */
  verb: string;
  kind?: "primary" | "danger";
  isDisabled?: boolean;
  failureTitle: string;
  onAction: () => Promise<void>;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const [failure, setFailure] = useState("");
  const act = async () => {
    try {
      await onAction();
    } catch (error) {
      setFailure(messageOf(error));
    }
  };
  return (
    <Dialog
      title={title}
      leave="Cancel"
      onClose={onClose}
      actions={
        <button type="button" class={kind} disabled={isDisabled} onClick={() => void act()}>
          {verb}
        </button>
      }
    >
      {children}
      {failure && <Problem title={failureTitle} text={failure} />}
    </Dialog>
  );
}
