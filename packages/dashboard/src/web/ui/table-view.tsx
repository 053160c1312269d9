import { type ComponentChildren } from "preact";
import { type Live } from "../api/live.ts";
import { setQuery } from "../router.ts";
import { Problem } from "./basics.tsx";
import { Frame } from "./frame.tsx";
import { NamespaceChoice } from "./namespace-choice.tsx";
import { Table } from "./table.tsx";

/** A view of all objects of a kind, in one namespace or in all: a table, or an explanation why it is empty. */
export function TableView({
  title,
  actions,
  namespace,
  note,
  above,
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
  /** Shown next to the choice of namespace. */
  note?: ComponentChildren;
  /** Shown between those and the table. */
  above?: ComponentChildren;
  live: Live<unknown>;
  /** The title of the problem when the objects cannot be listed. */
  problemTitle: string;
  /** Shown when no object exists. */
  empty: ComponentChildren;
  heads: readonly string[];
  rows: ComponentChildren;
  /** Dialogues of the view. */
  children?: ComponentChildren;
}) {
  return (
    <Frame title={title} actions={actions}>
      <div class="toolbar">
        <NamespaceChoice value={namespace} hasAll onChange={(ns) => setQuery({ ns })} />
        {note}
      </div>
      {problem.value && !isReady.value && <Problem title={problemTitle} text={problem.value} />}
      {above && <div class="above-table">{above}</div>}
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
