import { type ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** A table that scrolls where it is too wide. A column of buttons has an empty head. */
export function Table({
  heads,
  isPanel = false,
  children,
}: {
  heads: readonly string[];
  /** Whether it is a panel of its own, or a part of one. */
  isPanel?: boolean;
  children: ComponentChildren;
}) {
  const ref = useRef<HTMLDivElement>(null);
  // On a phone each cell says what it is: rows are cards there.
  useEffect(() => {
    for (const row of ref.current?.querySelectorAll<HTMLTableRowElement>("tbody > tr") ?? [])
      for (const [at, cell] of [...row.cells].entries())
        if (cell.colSpan === 1) cell.dataset["head"] = heads[at] ?? "";
  });
  return (
    <div ref={ref} class={isPanel ? "panel scroll-x" : "scroll-x"} tabIndex={0}>
      <table>
        <thead>
          <tr>{heads.map((head) => (head ? <th key={head}>{head}</th> : <td key={head} />))}</tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
