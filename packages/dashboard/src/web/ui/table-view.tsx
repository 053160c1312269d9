import { type ComponentChildren } from "preact";
import { type Live } from "../api/live.ts";
import { setQuery } from "../router.ts";
import { Problem } from "./basics.tsx";
import { Frame } from "./frame.tsx";
import { NamespaceChoice } from "./namespace-choice.tsx";
import { Table } from "./table.tsx";

/** A view of all objects of a kind, in one namespace or in all: a table, or why it is empty. */
export function TableView({
  title,
  actions,
  namespace,
  note,
  live: { items, isReady, problem },
  problemTitle,
  empty,
  heads,
  rows,
  children,
}: {
  title: string;
  actions?: ComponentChildren;
  namespace: string | undefined;
  /** Next to the choice of the namespace. */
  note?: ComponentChildren;
  live: Live<unknown>;
  /** Says that the objects cannot be listed. */
  problemTitle: string;
  /** Shown instead of the table when there are none. */
  empty: ComponentChildren;
  heads: readonly string[];
  rows: ComponentChildren;
  /** Dialogues over the view. */
  children?: ComponentChildren;
}) {
  return (
    <Frame title={title} actions={actions}>
      <div class="toolbar">
        <NamespaceChoice value={namespace} hasAll onChange={(ns) => setQuery({ ns })} />
        {note}
      </div>
      {problem.value && !isReady.value && <Problem title={problemTitle} text={problem.value} />}
      {isReady.value && items.value.length === 0 && empty}
      {items.value.length > 0 && (
        <Table isPanel heads={heads}>
          {rows}
        </Table>
      )}
      {children}
    </Frame>
  );
}
