import { type ComponentChildren } from "preact";
import { CopyButton, Problem } from "./basics.tsx";

/** What was typed elsewhere, or for something that is gone: it can be read, copied, used or discarded, and does nothing by itself. */
export function Offer({
  title,
  text,
  use,
  onUse,
  onDiscard,
  children,
}: {
  title: string;
  text: string;
  /** The label of the button that uses it. */
  use: string;
  onUse: () => void;
  /** Absent where it is still being typed. */
  onDiscard?: (() => void) | undefined;
  children?: ComponentChildren;
}) {
  return (
    <Problem tone="warn" title={title}>
      {children}
      <details>
        <summary>What was typed</summary>
        <pre tabIndex={0}>{text}</pre>
      </details>
      <p class="row wrap">
        <CopyButton text={text} label="Copy what was typed" />
        <button type="button" onClick={onUse}>
          {use}
        </button>
        {onDiscard && (
          <button type="button" class="danger" onClick={onDiscard}>
            Discard
          </button>
        )}
      </p>
    </Problem>
  );
}
