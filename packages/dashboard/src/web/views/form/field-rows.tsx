import { type ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { Icon } from "../../ui/icon.tsx";

/** Rows of fields, which the user adds and removes. */
export function FieldRows({
  title,
  what,
  add,
  names,
  hint,
  rowClass = "one",
  row,
  onAdd,
  onRemove,
  error,
  readOnly,
}: {
  title: string;
  /** What one row is called, in labels. */
  what: string;
  /** On the button that adds a row. */
  add: string;
  /** One for each row; it may be empty. */
  names: readonly string[];
  /** A hint that is shown while there are no rows. */
  hint?: string;
  rowClass?: string;
  row: (index: number) => ComponentChildren;
  onAdd: () => void;
  onRemove: (index: number) => void;
  error?: string | undefined;
  readOnly: boolean;
}) {
  const rows = useRef<HTMLFieldSetElement>(null);
  const remove = (index: number) => {
    onRemove(index);
    // The focus goes to the next row, or to where one is added.
    setTimeout(() => {
      const buttons = [...(rows.current?.querySelectorAll<HTMLElement>("button.remove") ?? [])];
      const add = rows.current?.querySelector<HTMLElement>("button.add");
      (buttons[index] ?? buttons.at(-1) ?? add)?.focus();
    });
  };
  return (
    <fieldset class="stack" disabled={readOnly} ref={rows}>
      <legend>{title}</legend>
      {hint !== undefined && names.length === 0 && <p class="muted">{hint}</p>}
      <div class="rows">
        {names.map((name, index) => (
          <div class={rowClass} key={index}>
            {row(index)}
            <button
              type="button"
              class="plain remove"
              aria-label={`Remove ${what} ${name || index + 1}`}
              onClick={() => remove(index)}
            >
              <Icon name="trash" />
            </button>
          </div>
        ))}
      </div>
      {error !== undefined && <p class="error-text">{error}</p>}
      <div>
        <button type="button" class="small add" onClick={onAdd}>
          <Icon name="plus" />
          {add.charAt(0).toUpperCase() + add.slice(1)}
        </button>
      </div>
    </fieldset>
  );
}
