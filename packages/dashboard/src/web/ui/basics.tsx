import { signal } from "@preact/signals";
import { type ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { segments } from "../router.ts";
import { type Tone } from "../state/function-state.ts";
import { Icon } from "./icon.tsx";

export function State({
  tone,
  children,
  pill,
}: {
  tone: Tone;
  children: ComponentChildren;
  pill?: boolean;
}) {
  return (
    <span class={`state tone-${tone}${pill ? " pill" : ""}`}>
      <span class="dot" />
      {children}
    </span>
  );
}

/** What is wrong, why, and how to fix it. */
export function Problem({
  tone = "bad",
  title,
  text,
  children,
}: {
  tone?: Tone;
  title: string;
  text?: string | undefined;
  children?: ComponentChildren;
}) {
  return (
    <section class={`problem tone-${tone}`} role={tone === "bad" ? "alert" : undefined}>
      <h2>{title}</h2>
      {text && <pre tabIndex={0}>{text}</pre>}
      {children}
    </section>
  );
}

export function Empty({
  title,
  children,
  actions,
}: {
  title: string;
  children?: ComponentChildren;
  actions?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      <div class="muted">{children}</div>
      {actions && <div class="actions">{actions}</div>}
    </div>
  );
}

/** A control with its label, and what is wrong with its value. `children` gets the ids that connect them. */
export function Field({
  label,
  hint,
  error,
  children,
}: {
  label: string;
  hint?: ComponentChildren;
  error?: string | undefined;
  children: (ids: {
    id: string;
    "aria-describedby"?: string;
    "aria-invalid"?: boolean;
  }) => ComponentChildren;
}) {
  const id = useId();
  const note = error ?? hint;
  return (
    <div class="field">
      <label class="label" for={id}>
        {label}
      </label>
      {children({
        id,
        ...(note !== undefined && { "aria-describedby": `${id}-note` }),
        ...(error !== undefined && { "aria-invalid": true }),
      })}
      {note !== undefined && (
        <span id={`${id}-note`} class={error === undefined ? "hint" : "error"}>
          {note}
        </span>
      )}
    </div>
  );
}

const copiedMs = 1_500;

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), copiedMs);
  };
  return (
    <button
      type="button"
      class="plain small"
      aria-label={label}
      title={label}
      onClick={() => void copy()}
    >
      <Icon name={isCopied ? "check" : "copy"} />
    </button>
  );
}

/** A modal dialogue; Escape or a click outside closes it. What was typed elsewhere stays. */
export function Dialog({
  title,
  onClose,
  children,
  leave,
  actions,
  kind = "",
}: {
  title: string;
  onClose: () => void;
  children?: ComponentChildren;
  /** The label of a button that closes it, before `actions`. */
  leave?: string;
  actions?: ComponentChildren;
  kind?: "" | "wide" | "palette";
}) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  const place = segments.value.join("/");
  const begun = useRef(place);
  // Over another view, by Back for example, it has no meaning.
  useEffect(() => {
    if (place !== begun.current) onClose();
  }, [place]);
  // Before the next key arrives: what is typed at once belongs to the dialogue.
  useLayoutEffect(() => {
    const before = document.activeElement;
    ref.current?.showModal();
    return () => (before as HTMLElement | null)?.focus?.();
  }, []);
  return (
    <dialog
      ref={ref}
      class={kind}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      // A browser closes a dialogue at the third Escape, even where its event was cancelled: this one ends only with its component.
      onClose={() => {
        onClose();
        setTimeout(() => {
          if (ref.current?.isConnected && !ref.current.open) ref.current.showModal();
        });
      }}
      onMouseDown={(event) => {
        if (event.target === ref.current) onClose();
      }}
    >
      <div class={kind === "palette" ? "sr" : "head"}>
        <h2 id={id}>{title}</h2>
      </div>
      {kind === "palette" ? children : <div class="body stack">{children}</div>}
      {(leave !== undefined || actions) && (
        <div class="actions">
          {leave !== undefined && (
            <button type="button" onClick={onClose}>
              {leave}
            </button>
          )}
          {actions}
        </div>
      )}
    </dialog>
  );
}

const units: [name: string, seconds: number][] = [
  ["d", 86_400],
  ["h", 3_600],
  ["m", 60],
];

/** How long ago, in the largest unit that is precise enough: `42s`, `5m`, `3h`, `12d`. */
export function ageOf(time: string | undefined, now = Date.now()): string {
  if (!time) return "";
  const since = now - Date.parse(time);
  if (Number.isNaN(since)) return "";
  const seconds = Math.max(0, Math.floor(since / 1000));
  const [name, size] = units.find(([, size]) => seconds >= 2 * size) ?? ["s", 1];
  return `${Math.floor(seconds / size)}${name}`;
}

/** All ages go on together. */
const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1_000);

/** When something will be: `in 5m`. */
export function Until({ time }: { time: Date }) {
  const present = Math.max(now.value, Date.now() - 1_000);
  return (
    <time dateTime={time.toISOString()} title={time.toISOString()}>
      in {ageOf(new Date(present).toISOString(), time.getTime())}
    </time>
  );
}

export function Age({ time }: { time: string | undefined }) {
  return (
    <time dateTime={time} title={time}>
      {ageOf(time, Math.max(now.value, Date.now() - 1_000))}
    </time>
  );
}
