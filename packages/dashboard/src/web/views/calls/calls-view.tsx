import { useState } from "preact/hooks";
import { messageOf } from "@spry/kube/browser";
import { type Call, type Function, functions, hasEnded } from "@spry/function/browser";
import { useLive } from "../../api/live.ts";
import { paths, query, setQuery } from "../../router.ts";
import { callsIn, cancelCall, toneOfCall } from "../../state/calls-admin.ts";
import { printable } from "../../state/log-text.ts";
import { may } from "../../state/rights.ts";
import { Age, Empty, Problem, State } from "../../ui/basics.tsx";
import { Frame } from "../../ui/frame.tsx";
import { later } from "../../ui/later.tsx";
import { NamespaceChoice } from "../../ui/namespace-choice.tsx";
import { Table } from "../../ui/table.tsx";
import { toast } from "../../ui/toasts.tsx";
import { usePolled } from "../../ui/use-polled.ts";
import { eventingGroup } from "../events/subscriptions-view.tsx";
import { CallDialog } from "./call-dialog.tsx";

const SchedulesPanel = later(async () => (await import("./schedules-panel.tsx")).SchedulesPanel);

const pollMs = 2_000;
const maxShown = 200;
/** With more namespaces, only the first ones are polled: users then choose a namespace. */
const maxNamespaces = 20;

interface ShownCall {
  namespace: string;
  call: Call;
}

/** Of Functions, only which exist and when they are called. */
const withSchedules = {
  kind: "schedules",
  transform: ({ metadata, spec }: Function): Function => ({
    metadata: {
      name: metadata.name ?? "",
      namespace: metadata.namespace ?? "",
      uid: metadata.uid ?? "",
      resourceVersion: metadata.resourceVersion ?? "",
    },
    spec: { source: {}, ...(spec.schedules && { schedules: spec.schedules }) },
  }),
};

/** Calls without a client that waits: when schedules make them, which wait, and how they have ended. */
export function CallsView() {
  const namespace = query.value.get("ns") ?? undefined;
  const live = useLive(functions, { namespace, keep: withSchedules });
  const [shown, setShown] = useState<{ namespace: string; id: string }>();
  const found = new Set(live.items.value.map(({ metadata }) => metadata.namespace ?? ""));
  const namespaces = namespace === undefined ? [...found].sort() : [namespace];
  const { calls, reload } = useCalls(namespaces.slice(0, maxNamespaces));
  const cancel = async ({ namespace, call }: ShownCall) => {
    try {
      await cancelCall(namespace, call.id);
      toast("good", `The call of ${call.function} is cancelled.`);
    } catch (error) {
      toast("bad", `The call was not cancelled: ${messageOf(error)}`);
    }
    reload();
  };
  return (
    <Frame title="Calls">
      <div class="toolbar">
        <NamespaceChoice value={namespace} hasAll onChange={(ns) => setQuery({ ns })} />
      </div>
      <div class="stack loose">
        {live.problem.value && !live.isReady.value && (
          <Problem title="Functions cannot be listed" text={live.problem.value} />
        )}
        <SchedulesPanel functions={live.items.value} calls={calls} onRun={reload} />
        <section class="panel">
          <div class="head">
            <h2>Asynchronous calls</h2>
          </div>
          {calls.length === 0 ? (
            <Empty title="No calls to show">
              With the header <code>Prefer: respond-async</code>, a request to any Function is
              accepted at once and made without its client, with retries. Its state and its result
              appear here.
            </Empty>
          ) : (
            <Table heads={["Function", "State", "Result", "Attempts", "Accepted", "Why", ""]}>
              {calls.slice(0, maxShown).map((each) => {
                const { namespace, call } = each;
                return (
                  <tr key={call.id}>
                    <td>
                      <a href={paths.fn(namespace, call.function)}>
                        {namespace}/{call.function}
                      </a>
                    </td>
                    <td>
                      <State tone={toneOfCall(call.state)}>{call.state}</State>
                    </td>
                    <td>{resultOf(call)}</td>
                    <td>{call.attempts}</td>
                    <td class="muted nowrap">
                      <Age time={call.acceptedAt} /> ago
                    </td>
                    <td class="muted">
                      {call.schedule ? `schedule ${call.schedule.name}` : "request"}
                    </td>
                    <td class="nowrap">
                      <button
                        type="button"
                        class="small"
                        onClick={() => setShown({ namespace, id: call.id })}
                      >
                        Details
                      </button>{" "}
                      {!hasEnded(call) && may(namespace, "delete", "calls", eventingGroup) && (
                        <button
                          type="button"
                          class="small danger"
                          onClick={() => void cancel(each)}
                        >
                          Cancel
                        </button>
                      )}
                    </td>
                  </tr>
                );
              })}
            </Table>
          )}
        </section>
      </div>
      {shown && <CallDialog {...shown} onClose={() => setShown(undefined)} />}
    </Frame>
  );
}

/** The newest first; empty without rights, or where there is no administration of events. */
function useCalls(namespaces: string[]): { calls: ShownCall[]; reload: () => void } {
  const key = namespaces.join(",");
  const load = async () => {
    const found = await Promise.all(
      namespaces.map(async (namespace) =>
        (await callsIn(namespace).catch(() => [])).map((call) => ({ namespace, call })),
      ),
    );
    return found.flat().sort((a, b) => (a.call.acceptedAt < b.call.acceptedAt ? 1 : -1));
  };
  const { value, reload } = usePolled(key, load, pollMs);
  return { calls: value ?? [], reload };
}

const resultOf = ({ response, error, notBefore, state }: Call): string => {
  if (response) return `HTTP ${response.status}`;
  if (error !== undefined) return printable(error).slice(0, 80);
  return state === "waiting" && notBefore !== undefined ? `not before ${notBefore}` : "–";
};
