import { useRef, useState } from "preact/hooks";
import { Icon } from "../../ui/icon.tsx";

/** Names with values, in the order in which they were typed. */
export function LabelFields({
  title,
  what,
  values,
  onChange,
  error,
  readOnly,
}: {
  title: string;
  /** What one of them is called. */
  what: string;
  values: Record<string, string>;
  onChange: (values: Record<string, string>) => void;
  error?: string | undefined;
  readOnly: boolean;
}) {
  // A row stays while its name is empty, or is for a moment the same as that of another row.
  const rows = useRef<[string, string][]>(Object.entries(values));
  if (
    JSON.stringify(Object.fromEntries(rows.current.filter(([name]) => name))) !==
    JSON.stringify(values)
  )
    rows.current = Object.entries(values);
  const [, showAgain] = useState(0);
  const set = (next: [string, string][]) => {
    rows.current = next;
    showAgain((count) => count + 1);
    onChange(Object.fromEntries(next.filter(([name]) => name)));
  };
  return (
    <fieldset class="stack" disabled={readOnly}>
      <legend>{title}</legend>
      <div class="rows">
        {rows.current.map(([name, value], index) => (
          <div class="one pair" key={index}>
            <input
              class="mono"
              aria-label={`Name of ${what} ${index + 1}`}
              value={name}
              onInput={({ currentTarget }) =>
                set(
                  rows.current.map((row, at) =>
                    at === index ? [currentTarget.value, value] : row,
                  ),
                )
              }
            />
            <input
              class="mono"
              aria-label={`Value of ${what} ${index + 1}`}
              value={value}
              onInput={({ currentTarget }) =>
                set(
                  rows.current.map((row, at) => (at === index ? [name, currentTarget.value] : row)),
                )
              }
            />
            <button
              type="button"
              class="plain"
              aria-label={`Remove ${what} ${name || index + 1}`}
              onClick={() => set(rows.current.filter((_, at) => at !== index))}
            >
              <Icon name="trash" />
            </button>
          </div>
        ))}
      </div>
      {error !== undefined && <p class="error-text">{error}</p>}
      <div>
        <button type="button" class="small" onClick={() => set([...rows.current, ["", ""]])}>
          <Icon name="plus" />
          {what}
        </button>
      </div>
    </fieldset>
  );
}
