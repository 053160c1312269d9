import { type WrongCode } from "../state/wrong-code.ts";
import { ActionDialog } from "./action-dialog.tsx";

/** Before code is applied that the editor marks red. */
export function WrongCodeDialog({
  wrong: { file, line },
  verb,
  onAction,
  onClose,
}: {
  wrong: WrongCode;
  verb: string;
  onAction: () => Promise<void>;
  onClose: () => void;
}) {
  return (
    <ActionDialog
      title={`${file} has a syntax error`}
      verb={`${verb} all the same`}
      kind="danger"
      failureTitle="It was not applied"
      onAction={async () => {
        onClose();
        await onAction();
      }}
      onClose={onClose}
    >
      <p>
        Line {line} is marked red in the editor: the new version will probably not start. What
        serves now goes on serving.
      </p>
    </ActionDialog>
  );
}
