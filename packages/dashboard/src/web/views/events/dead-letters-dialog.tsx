import { useEffect, useState } from "preact/hooks";
import { messageOf } from "@spry/kube/browser";
import {
  type DeadLetter,
  deadLetters,
  discardLetters,
  redrive,
  type Which,
} from "../../state/events-admin.ts";
import { printable } from "../../state/log-text.ts";
import { Age, Dialog, Problem } from "../../ui/basics.tsx";
import { toast } from "../../ui/toasts.tsx";

/** Events that could not be delivered, and why. They can be sent again, one by one or all. */
export function DeadLettersDialog({
  namespace,
  name,
  onClose,
}: {
  namespace: string;
  name: string;
  onClose: () => void;
}) {
  const [letters, setLetters] = useState<DeadLetter[]>([]);
  const [next, setNext] = useState<number>();
  const [failure, setFailure] = useState("");
  const [isSure, setSure] = useState(false);
  const load = async (after?: number) => {
    try {
      const page = await deadLetters(namespace, name, after);
      setLetters((before) => (after === undefined ? page.items : [...before, ...page.items]));
      setNext(page.next);
    } catch (error) {
      setFailure(messageOf(error));
    }
  };
  useEffect(() => void load(), [namespace, name]);
  const act = async (what: "redrive" | "discard", which: Which) => {
    try {
      const change = what === "redrive" ? redrive : discardLetters;
      const { count } = await change(namespace, name, which);
      const verb = what === "redrive" ? "sent again" : "discarded";
      toast("good", `${count} ${count === 1 ? "event is" : "events are"} ${verb}.`);
      if ("all" in which) return onClose();
      await load();
    } catch (error) {
      setFailure(messageOf(error));
    }
  };
  return (
    <Dialog
      kind="wide"
      title={`Dead letters of ${name}`}
      leave="Close"
      onClose={onClose}
      actions={
        <>
          {/* It cannot be undone: the second click means it. */}
          <button
            type="button"
            class="danger"
            disabled={letters.length === 0}
            onClick={() => (isSure ? void act("discard", { all: true }) : setSure(true))}
          >
            {isSure ? "Discard all of them for good" : "Discard all"}
          </button>
          <button type="button" class="primary" onClick={() => void act("redrive", { all: true })}>
            Redrive all
          </button>
        </>
      }
    >
      {failure && <Problem title="The dead letters were not changed" text={failure} />}
      {letters.map((letter) => (
        <section key={letter.id} class="panel">
          <div class="head">
            <strong class="mono">
              {printable(String(letter.event["type"] ?? ""))}{" "}
              <span class="muted light">{printable(String(letter.event["id"] ?? ""))}</span>
            </strong>
            <span class="row wrap">
              <span class="muted">
                <Age time={letter.buriedAt} /> ago, {letter.attempts}{" "}
                {letter.attempts === 1 ? "attempt" : "attempts"}
              </span>
              <button
                type="button"
                class="small"
                onClick={() => void act("redrive", { ids: [letter.id] })}
              >
                Redrive
              </button>
              <button
                type="button"
                class="small danger"
                onClick={() => void act("discard", { ids: [letter.id] })}
              >
                Discard
              </button>
            </span>
          </div>
          <div class="body stack tight">
            <p class="error-text">
              {letter.reason}: {printable(letter.message)}
            </p>
            <details>
              <summary>Event</summary>
              <pre>{printable(letter.eventText)}</pre>
            </details>
          </div>
        </section>
      ))}
      {next !== undefined && (
        <button type="button" onClick={() => void load(next)}>
          More
        </button>
      )}
    </Dialog>
  );
}
