import { type Event, type UnknownObject } from "@spry/kube";
import { column, type Column, nameColumn, wide } from "../../table/column.ts";
import { since } from "../../table/duration.ts";
import { text } from "../../table/fields.ts";

/** Events are listed by time and reason; their names come last. */
export const eventColumns: Column[] = [
  column<Event>("Last Seen", (event) => since(eventTime(event))),
  column<Event>("Type", ({ type }) => type ?? ""),
  column<Event>("Reason", ({ reason }) => reason ?? ""),
  column("Object", (event: UnknownObject) => {
    const { kind = "", name = "" } = (event.involvedObject ?? {}) as {
      kind?: string;
      name?: string;
    };
    return `${kind.toLowerCase()}/${name}`;
  }),
  column(
    "Subobject",
    (event: UnknownObject) =>
      ((event.involvedObject ?? {}) as { fieldPath?: string }).fieldPath ?? "",
    wide,
  ),
  column<Event>(
    "Source",
    ({ source, reportingComponent, reportingInstance }) =>
      (source?.component
        ? [source.component, source.host]
        : [reportingComponent, reportingInstance]
      )
        .filter(Boolean)
        .join(", "),
    wide,
  ),
  column("Message", (event: UnknownObject) => (text(event.message) ?? "").trim()),
  column<Event>(
    "First Seen",
    (event) => since(text(event.firstTimestamp) ?? text(event.eventTime)),
    wide,
  ),
  column(
    "Count",
    (event: UnknownObject) => {
      const series = event.series as { count?: number } | undefined;
      return Number((series?.count ?? event.count) || 1);
    },
    wide,
  ),
  { ...nameColumn, priority: 1 },
];

function eventTime(event: Event): string | undefined {
  const series = event.series as { lastObservedTime?: unknown } | undefined;
  return (
    text(series?.lastObservedTime) ??
    text(event.lastTimestamp) ??
    text(event.firstTimestamp) ??
    text(event.eventTime)
  );
}
