import { useEffect, useRef, useState } from "preact/hooks";
import { messageOf } from "@spry/kube/browser";
import { paths } from "../../router.ts";
import { asCommand, type CallRequest, headerProblem } from "../../state/call-request.ts";
import { type CallAnswer, CallError, callFunction } from "../../state/calls.ts";
import { urlOf } from "../../state/info.ts";
import { store, stored } from "../../state/tab-storage.ts";
import { collectorOf, keepTracedCall, traceIdIn, withTrace } from "../../state/tracing.ts";
import { CopyButton, Field, State } from "../../ui/basics.tsx";
import { Icon } from "../../ui/icon.tsx";
import { ResponsePanel, toneOf } from "./response-panel.tsx";
import { type TabProps } from "./tab-props.ts";

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
const maxKept = 20;

interface Past {
  request: CallRequest;
  status: number;
  ms: number;
}

interface Kept {
  request: CallRequest;
  past: Past[];
}

const emptyRequest: CallRequest = { method: "GET", path: "/", headers: "", body: "" };

const nothingKept: Kept = { request: emptyRequest, past: [] };
const requestShape = {
  "method!": "text",
  "path!": "text",
  "headers!": "text",
  "body!": "text",
} as const;
const keptShape = {
  "request!": requestShape,
  "past!": [{ "request!": requestShape, "status!": "number", "ms!": "number" }],
} as const;

const cloudEvent: CallRequest = {
  method: "POST",
  path: "/",
  headers: [
    "Content-Type: application/json",
    "ce-specversion: 1.0",
    "ce-type: order.created.v1",
    "ce-source: dashboard",
    "ce-id: 1",
  ].join("\n"),
  body: '{ "id": "A-1", "amount": 120 }',
};

/** A request to the Function, and its response as it arrives. */
export function RequestConsole({ fn, pods }: TabProps) {
  const { namespace = "", name = "" } = fn.metadata;
  const storageKey = `calls.${namespace}/${name}`;
  const [kept, setKept] = useState<Kept>(() => stored<Kept>(storageKey, keptShape) ?? nothingKept);
  const [answer, setAnswer] = useState<CallAnswer>();
  const [failure, setFailure] = useState<CallError>();
  const running = useRef<AbortController | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  const [traceId, setTraceId] = useState<string>();
  const { request, past } = kept;
  const isTraced = Boolean(collectorOf(pods));
  const keep = (next: Kept) => {
    setKept(next);
    store(storageKey, next);
  };
  // What was typed while the response was on its way stays.
  const remember = (call: Past) =>
    setKept((now) => {
      const next = { ...now, past: [call, ...now.past].slice(0, maxKept) };
      store(storageKey, next);
      return next;
    });
  // A stream ends with its view.
  useEffect(() => () => running.current?.abort(), []);
  const wrongHeaders = headerProblem(request.headers);
  const change = (part: Partial<CallRequest>) =>
    keep({ ...kept, request: { ...request, ...part } });
  const send = async () => {
    const controller = new AbortController();
    running.current = controller;
    setBusy(true);
    setFailure(undefined);
    setAnswer(undefined);
    const sent = isTraced ? { ...request, headers: withTrace(request.headers) } : request;
    const traced = traceIdIn(sent.headers);
    setTraceId(traced);
    try {
      const result = await callFunction({ namespace, name }, sent, setAnswer, controller.signal);
      setAnswer(result);
      if (isTraced && traced !== undefined) {
        const { method, path } = request;
        const at = new Date().toISOString();
        const { status, totalMs: ms = 0 } = result;
        keepTracedCall(namespace, name, { traceId: traced, method, path, status, ms, at });
      }
      const call = { request, status: result.status, ms: result.totalMs ?? 0 };
      remember(call);
    } catch (error) {
      setFailure(error instanceof CallError ? error : new CallError(messageOf(error), false));
    } finally {
      setBusy(false);
    }
  };
  const url = urlOf(fn) ?? `http://${name}.${namespace}.svc.cluster.local/`;
  return (
    <div class="console">
      <form
        class="stack"
        onKeyDown={(event) => {
          if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
          event.preventDefault();
          event.currentTarget.requestSubmit();
        }}
        onSubmit={(event) => {
          event.preventDefault();
          if (!isBusy && wrongHeaders === undefined) void send();
        }}
      >
        <div class="row">
          <select
            aria-label="Method"
            value={request.method}
            onChange={({ currentTarget }) => change({ method: currentTarget.value })}
          >
            {methods.map((method) => (
              <option key={method}>{method}</option>
            ))}
          </select>
          <input
            class="grow mono"
            aria-label="Path and query"
            value={request.path}
            onInput={({ currentTarget }) => change({ path: currentTarget.value })}
          />
          {isBusy ? (
            // Two buttons: with a single one, a click on "Stop" could end as a click on "Send".
            <button key="stop" type="button" onClick={() => running.current?.abort()}>
              Stop
            </button>
          ) : (
            <button key="send" type="submit" class="primary" disabled={wrongHeaders !== undefined}>
              <Icon name="play" />
              Send
            </button>
          )}
        </div>
        <Field
          label="Headers"
          hint="one per line, as in Content-Type: application/json"
          error={wrongHeaders}
        >
          {(ids) => (
            <textarea
              {...ids}
              rows={3}
              value={request.headers}
              onInput={({ currentTarget }) => change({ headers: currentTarget.value })}
            />
          )}
        </Field>
        <Field
          label="Body"
          hint={
            ["GET", "HEAD"].includes(request.method) ? `not sent with ${request.method}` : undefined
          }
        >
          {(ids) => (
            <textarea
              {...ids}
              rows={6}
              value={request.body}
              onInput={({ currentTarget }) => change({ body: currentTarget.value })}
            />
          )}
        </Field>
        <div class="row wrap">
          <button
            type="button"
            class="small"
            onClick={() => keep({ ...kept, request: cloudEvent })}
          >
            <Icon name="event" />
            CloudEvent
          </button>
          <button
            type="button"
            class="small"
            onClick={() => keep({ ...kept, request: emptyRequest })}
          >
            Reset
          </button>
          <span class="grow" />
          <span class="row nowrap">
            <span class="muted">Copy as</span>
            <Copy label="curl" text={asCommand.curl(url, request)} />
            <Copy label="fetch" text={asCommand.fetch(url, request)} />
            <Copy label="kubectl" text={asCommand.kubectl({ namespace, name }, request)} />
          </span>
        </div>
        {past.length > 0 && (
          <section class="stack tight">
            <h3>Earlier requests</h3>
            {past.map((call, index) => (
              <button
                key={index}
                type="button"
                class="plain small row"
                onClick={() => keep({ ...kept, request: call.request })}
              >
                <State tone={toneOf(call.status)}>{call.status}</State>
                <span class="mono clip grow">
                  {call.request.method} {call.request.path}
                </span>
                <span class="muted">{Math.round(call.ms)} ms</span>
              </button>
            ))}
          </section>
        )}
      </form>
      <ResponsePanel
        name={name}
        answer={answer}
        failure={failure}
        isBusy={isBusy}
        logs={paths.fn(namespace, name, "logs")}
        traceId={traceId}
      />
    </div>
  );
}

function Copy({ label, text }: { label: string; text: string }) {
  return (
    <span class="row">
      {label}
      <CopyButton text={text} label={`Copy as ${label}`} />
    </span>
  );
}
