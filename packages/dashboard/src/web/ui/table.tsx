import { type ComponentChildren } from "preact";

/** Scrolls by itself where it is too wide. An empty head is that of buttons. */
export function Table({
  heads,
  isPanel = false,
  children,
}: {
  heads: readonly string[];
  /** Not within another panel. */
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
