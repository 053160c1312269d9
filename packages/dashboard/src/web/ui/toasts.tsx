import { signal } from "@preact/signals";
import { type Tone } from "../state/function-state.ts";
import { Icon } from "./icon.tsx";

interface Toast {
  id: number;
  tone: Tone;
  text: string;
  action?: { label: string; run: () => void };
}

const toasts = signal<Toast[]>([]);
let nextId = 1;
/** A toast with an action stays longer, for slow readers. */
const shownMs = { plain: 6_000, withAction: 15_000 };

/** Shows what has happened; `action` can undo it. Failures stay until they are closed. */
export function toast(tone: Tone, text: string, action?: Toast["action"]): void {
  const id = nextId++;
  toasts.value = [...toasts.value.slice(-3), { id, tone, text, ...(action && { action }) }];
  if (tone !== "bad") setTimeout(() => close(id), action ? shownMs.withAction : shownMs.plain);
}

const close = (id: number) => {
  toasts.value = toasts.value.filter((each) => each.id !== id);
};

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, tone, text, action }) => (
        <div key={id} class={`toast tone-${tone}`}>
          <span class="grow">{text}</span>
          {action && (
            <button
              type="button"
              class="small"
              onClick={() => {
                close(id);
                action.run();
              }}
            >
              {action.label}
            </button>
          )}
          <button type="button" class="plain small" aria-label="Close" onClick={() => close(id)}>
            <Icon name="x" />
          </button>
        </div>
      ))}
    </div>
  );
}
