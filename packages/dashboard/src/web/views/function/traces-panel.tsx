import { collectorOf, tracedCalls } from "../../state/tracing.ts";
import { Age, CopyButton, Empty, State } from "../../ui/basics.tsx";
import { Table } from "../../ui/table.tsx";
import { type TabProps } from "./tab-props.ts";

/** Where the Function's spans go, and the traces of the console's requests; without a collector, how to turn traces on. */
export function TracesPanel({ fn, pods }: Pick<TabProps, "fn" | "pods">) {
  const { namespace = "", name = "" } = fn.metadata;
  const collector = collectorOf(pods);
  const calls = tracedCalls(namespace, name);
  return (
    <section class="panel" aria-label="Traces">
      <div class="head">
        <h2>Traces</h2>
        {collector ? (
          <State tone="good">on</State>
        ) : (
          <State tone="idle">{collector === undefined ? "not known" : "off"}</State>
        )}
      </div>
      {collector === undefined && (
        <Empty title="No Pods, so nothing is known">
          Whether requests are traced is shown here once a Pod of the Function runs.
        </Empty>
      )}
      {collector === "" && (
        <Empty
          title="Requests are not traced"
          actions={
            <a class="button" href="/settings">
              Open the settings
            </a>
          }
        >
          <p>
            A trace shows where a request’s time goes: in the Function, and in whatever it calls.
            Spans are sent by OTLP over HTTP to a collector, such as Jaeger’s or OpenTelemetry’s.
            Name yours in the settings, and every Function has it with its next Pods:
          </p>
          <pre class="left">{"tracing:\n  endpoint: http://collector.observability:4318"}</pre>
        </Empty>
      )}
      {collector && (
        <div class="body stack">
          <p>
            Each request’s spans are sent to <code>{collector}</code>. Look there for the trace’s
            id, or for the service <code>{name}</code>.
          </p>
          {calls.length === 0 ? (
            <p class="muted">
              Requests that you send from “Try it” are listed here, with their ids.
            </p>
          ) : (
            <Table heads={["Trace", "Request", "Status", "Took", "When"]}>
              {calls.map(({ traceId, method, path, status, ms, at }) => (
                <tr key={`${traceId} ${at}`}>
                  <td class="mono nowrap">
                    {traceId} <CopyButton text={traceId} label={`Copy the id ${traceId}`} />
                  </td>
                  <td class="mono">
                    {method} {path}
                  </td>
                  <td>{status}</td>
                  <td class="nowrap">{Math.round(ms)} ms</td>
                  <td class="muted nowrap">
                    <Age time={at} /> ago
                  </td>
                </tr>
              ))}
            </Table>
          )}
        </div>
      )}
    </section>
  );
}
