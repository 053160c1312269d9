import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Function, validateFunction } from "@spry/function/browser";
import { messageOf } from "@spry/kube/browser";
import { desiredOf, isChanged } from "../../state/changes.ts";
import { connectionState } from "../../api/tab-connection.ts";
import { isLoggedIn } from "../../session/login.ts";
import {
  type Clashing,
  continueFrom,
  discard,
  type Draft,
  draftOf,
  edit,
  draftName,
  rebase,
  save,
} from "../../state/drafts.ts";
import { unfinished, unstored } from "../../state/typed.ts";
import { may } from "../../state/rights.ts";
import { type WrongCode, wrongCodeIn } from "../../state/wrong-code.ts";
import { Dialog, Problem } from "../../ui/basics.tsx";
import { useFocusOnLeave } from "../../ui/keep-focus.ts";
import { later } from "../../ui/later.tsx";
import { useApplyKey } from "../../ui/use-apply-key.ts";
import { toast } from "../../ui/toasts.tsx";
import { WrongCodeDialog } from "../../ui/wrong-code-dialog.tsx";

const ClashDialog = later(async () => (await import("./clash-dialog.tsx")).ClashDialog);
const YamlDiff = later(async () => (await import("./yaml-diff.tsx")).YamlDiff);

/** For how long a draft that has been saved is shown at most. */
const watchPatienceMs = 3_000;

/** On all tabs while changes have not been applied: apply or discard them. */
export function SaveBar({ fn }: { fn: Function }) {
  const { namespace = "", name = "" } = fn.metadata;
  const draft = draftOf(fn);
  const [isBusy, setBusy] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const [failure, setFailure] = useState("");
  const [wrong, setWrong] = useState<WrongCode>();
  const [clash, setClash] = useState<Clashing>();
  const [isReviewing, setReviewing] = useState(false);
  // The draft is shown until the watch has brought what was saved: the code before it would look like a loss.
  const [saved, setSaved] = useState<{ fn: Function; draft: Draft }>();
  const isCurrent =
    saved !== undefined && (fn.metadata.generation ?? 0) >= (saved.fn.metadata.generation ?? 0);
  useEffect(() => {
    if (saved === undefined) return undefined;
    const finish = () => {
      void continueFrom(saved.fn, saved.draft).then(() => setSaved(undefined));
    };
    if (isCurrent) return finish();
    const timer = setTimeout(finish, watchPatienceMs);
    return () => clearTimeout(timer);
  }, [saved, isCurrent]);
  // What has failed without a login is tried again with the next one.
  useEffect(() => setFailure(""), [isLoggedIn.value, connectionState.value]);
  useApplyKey(button);
  const { value } = draft;
  // Of a large source it takes milliseconds: once for each key.
  const spec = value?.edited.spec;
  const problems = useMemo(
    () => (spec ? validateFunction({ metadata: { namespace, name }, spec }) : []),
    [spec, namespace, name],
  );
  useFocusOnLeave(value !== undefined && saved === undefined);
  if (!value || saved !== undefined || !may(namespace, "patch", "functions")) return null;
  const apply = async (value: Draft, isSure = false) => {
    setBusy(true);
    setFailure("");
    try {
      const found = isSure
        ? undefined
        : await wrongCodeIn(value.edited.spec, value.base.spec).catch(() => undefined);
      if (found) return setWrong(found);
      const saved = await save({ namespace, name }, value);
      if ("clashes" in saved) return setClash(saved);
      setClash(undefined);
      setSaved({ fn: saved.fn, draft: value });
      toast("good", `${name} is applied. The previous version serves until the new one is ready.`);
    } catch (error) {
      setFailure(messageOf(error));
    } finally {
      setBusy(false);
    }
  };
  const isOutdated = isChanged(value.base, desiredOf(fn));
  const goBack = () => {
    const { edited } = value;
    discard(fn);
    toast("idle", "Your changes were discarded.", {
      label: "Undo",
      run: () => edit(fn, () => edited),
    });
  };
  return (
    <>
      {failure && <Problem title="The change was not applied" text={failure} />}
      {problems.length > 0 && (
        <Problem
          tone="warn"
          title="This would be refused"
          text={problems
            .map(({ path, message }) =>
              message.startsWith(path) ? message : `${path}: ${message}`,
            )
            .join("\n")}
        />
      )}
      {wrong && (
        <WrongCodeDialog
          wrong={wrong}
          verb="Apply"
          onAction={() => apply(value, true)}
          onClose={() => setWrong(undefined)}
        />
      )}
      {clash && (
        <ClashDialog
          draft={value}
          clash={clash}
          onClose={() => setClash(undefined)}
          onChoose={(edited) => {
            setClash(undefined);
            rebase(clash.theirs, edited);
            const { value: next } = draftOf(fn);
            if (next) void apply(next, true);
          }}
        />
      )}
      {isReviewing && (
        <Dialog
          kind="wide"
          title={`Changes of ${name}`}
          leave="Close"
          onClose={() => setReviewing(false)}
          actions={
            <button
              type="button"
              class="primary"
              disabled={isBusy || problems.length > 0 || value.yaml !== undefined}
              onClick={() => {
                setReviewing(false);
                void apply(value);
              }}
            >
              Apply
            </button>
          }
        >
          <YamlDiff
            label="Changes"
            target={{ namespace, name }}
            before={desiredOf(fn)}
            after={value.edited}
          />
        </Dialog>
      )}
      <div class="savebar" aria-busy={unfinished.value.has(draftName(fn))}>
        <span class="grow">
          <strong>Changes not applied.</strong>{" "}
          <span class="muted not-phone">
            {isOutdated
              ? "Another user has changed this Function meanwhile: Apply keeps both changes, and shows what both have changed."
              : unstored.value.has(draftName(fn))
                ? `${isSecureContext ? "This browser has no room to store them" : "Without HTTPS this browser does not store them"}: they are lost when this tab is closed.`
                : "They stay in this browser."}
          </span>
        </span>
        <button type="button" onClick={goBack} disabled={isBusy}>
          Discard
        </button>
        <button type="button" onClick={() => setReviewing(true)}>
          Review
        </button>
        <button
          ref={button}
          type="button"
          class="primary"
          title="Ctrl-S"
          onClick={() => void apply(value)}
          disabled={isBusy || problems.length > 0 || value.yaml !== undefined}
        >
          Apply
        </button>
      </div>
    </>
  );
}
