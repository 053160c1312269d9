import { useRef, useState } from "preact/hooks";
import { FieldRows } from "./field-rows.tsx";

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
  const setRow = (index: number, row: [string, string]) =>
    set(rows.current.map((each, at) => (at === index ? row : each)));
  return (
    <FieldRows
      title={title}
      what={what}
      add={what}
      names={rows.current.map(([name]) => name)}
      rowClass="one pair"
      row={(index) => {
        const [name = "", value = ""] = rows.current[index] ?? [];
        return (
          <>
            <input
              class="mono"
              aria-label={`Name of ${what} ${index + 1}`}
              value={name}
              onInput={({ currentTarget }) => setRow(index, [currentTarget.value, value])}
            />
            <input
              class="mono"
              aria-label={`Value of ${what} ${index + 1}`}
              value={value}
              onInput={({ currentTarget }) => setRow(index, [name, currentTarget.value])}
            />
          </>
        );
      }}
      onAdd={() => set([...rows.current, ["", ""]])}
      onRemove={(index) => set(rows.current.filter((_, at) => at !== index))}
      error={error}
      readOnly={readOnly}
    />
  );
}
