import { type Event, resources } from "@spry/kube/browser";
import { useLive } from "../../api/live.ts";
import { Age, Empty, State } from "../../ui/basics.tsx";
import { Table } from "../../ui/table.tsx";
import { type TabProps } from "./tab-props.ts";

/** The present conditions, and what has happened. */
export function EventsTab({ fn }: TabProps) {
  const { namespace, name = "" } = fn.metadata;
  const { items, isReady, problem } = useLive(resources.events, {
    namespace,
    fieldSelector: `involvedObject.kind=Function,involvedObject.name=${name}`,
  });
  const events = [...items.value].sort((a, b) => (timeOf(a) < timeOf(b) ? 1 : -1));
  return (
    <div class="stack loose">
      <section class="panel">
        <div class="head">
          <h2>Conditions</h2>
        </div>
        <Table heads={["Condition", "Status", "Reason", "Message", "Since"]}>
          {(fn.status?.conditions ?? []).map((each) => (
            <tr key={each.type}>
              <td>{each.type}</td>
              <td>
                <State tone={toneOf(each)}>{each.status}</State>
              </td>
              <td>{each.reason}</td>
              <td>
                <pre>{each.message}</pre>
              </td>
              <td>
                <Age time={each.lastTransitionTime} />
              </td>
            </tr>
          ))}
        </Table>
      </section>
      <section class="panel">
        <div class="head">
          <h2>Events</h2>
        </div>
        {events.length === 0 && (
          <Empty
            title={
              isReady.value ? "No Events" : problem.value ? "Events cannot be read" : "Loading …"
            }
          >
            {problem.value ||
              "Each step of a Function is an Event; Kubernetes keeps them for an hour."}
          </Empty>
        )}
        {events.length > 0 && (
          <Table heads={["When", "Reason", "Message"]}>
            {events.slice(0, 200).map((event) => (
              <tr key={event.metadata.uid}>
                <td class="nowrap muted">
                  <Age time={timeOf(event)} /> ago
                </td>
                <td>
                  <State tone={event.type === "Warning" ? "bad" : "idle"}>{event.reason}</State>
                </td>
                <td>
                  <pre>{event.message}</pre>
                </td>
              </tr>
            ))}
          </Table>
        )}
      </section>
    </div>
  );
}

const timeOf = ({ lastTimestamp, metadata }: Event): string =>
  lastTimestamp ?? metadata.creationTimestamp ?? "";

/** `Stalled` and `Reconciling` exist only while something is not as desired. */
function toneOf({ type, status }: { type: string; status: string }) {
  if (type === "Stalled") return "bad";
  if (type === "Reconciling") return "busy";
  return status === "True" ? "good" : status === "False" ? "bad" : "busy";
}
