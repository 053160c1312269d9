import { useEffect, useState } from "preact/hooks";
import { type Call, type CallResponse } from "@spry/function/browser";
import { messageOf } from "@spry/kube/browser";
import { callIn, toneOfCall } from "../../state/calls-admin.ts";
import { printable } from "../../state/log-text.ts";
import { Dialog, Problem, State } from "../../ui/basics.tsx";

/** One call with its result. */
export function CallDialog({
  namespace,
  id,
  onClose,
}: {
  namespace: string;
  id: string;
  onClose: () => void;
}) {
  const [call, setCall] = useState<Call>();
  const [failure, setFailure] = useState("");
  useEffect(() => {
    callIn(namespace, id).then(setCall, (error: unknown) => setFailure(messageOf(error)));
  }, [namespace, id]);
  return (
    <Dialog
      kind="wide"
      title={call ? `A call of ${call.function}` : "A call"}
      leave="Close"
      onClose={onClose}
    >
      {failure && <Problem title="The call cannot be shown" text={failure} />}
      {call && (
        <>
          <dl class="pairs">
            <dt>State</dt>
            <dd>
              <State tone={toneOfCall(call.state)}>{call.state}</State>
            </dd>
            <dt>Request</dt>
            <dd class="mono">
              {call.method} {call.path}
            </dd>
            <dt>Id</dt>
            <dd class="mono">{call.id}</dd>
            {times(call).map(([name, time]) => (
              <Pair key={name} name={name} value={time} />
            ))}
            <dt>Attempts</dt>
            <dd>{call.attempts}</dd>
          </dl>
          {call.error !== undefined && <p class="error-text">{printable(call.error)}</p>}
          {call.response && (
            <section class="stack tight">
              <h3>Response: HTTP {call.response.status}</h3>
              <pre tabIndex={0}>{bodyOf(call.response)}</pre>
            </section>
          )}
        </>
      )}
    </Dialog>
  );
}

function Pair({ name, value }: { name: string; value: string }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}

const times = ({ acceptedAt, notBefore, startedAt, endedAt, schedule }: Call) =>
  (
    [
      ["Accepted", acceptedAt],
      ["Not before", notBefore],
      ["Due", schedule?.dueAt],
      ["Started", startedAt],
      ["Ended", endedAt],
    ] as const
  ).flatMap(([name, time]): [string, string][] => (time === undefined ? [] : [[name, time]]));

function bodyOf({ body, bodyBase64, isCut }: CallResponse): string {
  if (bodyBase64 !== undefined)
    return `(${Math.floor((bodyBase64.length * 3) / 4)} bytes that are not text)`;
  return `${printable(body ?? "") || "(empty body)"}${isCut ? "\n… the rest was not kept" : ""}`;
}
