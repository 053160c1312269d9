import { type ComponentChildren } from "preact";

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
  return (
    <div class={isPanel ? "panel scroll-x" : "scroll-x"} tabIndex={0}>
      <table>
        <thead>
          <tr>{heads.map((head) => (head ? <th key={head}>{head}</th> : <td key={head} />))}</tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
