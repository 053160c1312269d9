import { useRef, useState } from "preact/hooks";
import { messageOf } from "@spry/kube/browser";
import { paths, query, setQuery } from "../../router.ts";
import { asCommand, type CallRequest } from "../../state/call-request.ts";
import { type CallAnswer, callFunction } from "../../state/calls.ts";
import { urlOf } from "../../state/info.ts";
import { store, stored } from "../../state/tab-storage.ts";
import { collectorOf, keepTracedCall, traceIdIn, withTrace } from "../../state/tracing.ts";
import { CopyButton, Field, Problem, State } from "../../ui/basics.tsx";
import { Icon } from "../../ui/icon.tsx";
import { SocketConsole } from "./socket-console.tsx";
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

/** Requests, or a WebSocket; the address says which. */
export function TryTab(props: TabProps) {
  const isSocket = query.value.get("with") === "websocket";
  const choice = (title: string, isChosen: boolean, value: string | undefined) => (
    <button type="button" aria-pressed={isChosen} onClick={() => setQuery({ with: value })}>
      {title}
    </button>
  );
  return (
    <div class="stack">
      <div class="choice" role="group" aria-label="How to call it">
        {choice("Request", !isSocket, undefined)}
        {choice("WebSocket", isSocket, "websocket")}
      </div>
      {isSocket ? <SocketConsole fn={props.fn} /> : <RequestConsole {...props} />}
    </div>
  );
}

/** A request to the Function, and its response as it arrives. */
function RequestConsole({ fn, pods }: TabProps) {
  const { namespace = "", name = "" } = fn.metadata;
  const storageKey = `calls.${namespace}/${name}`;
  const [kept, setKept] = useState<Kept>(() => stored<Kept>(storageKey, keptShape) ?? nothingKept);
  const [answer, setAnswer] = useState<CallAnswer>();
  const [failure, setFailure] = useState("");
  const running = useRef<AbortController | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  const [traceId, setTraceId] = useState<string>();
  const { request, past } = kept;
  const isTraced = Boolean(collectorOf(pods));
  const keep = (next: Kept) => {
    setKept(next);
    store(storageKey, next);
  };
  const change = (part: Partial<CallRequest>) =>
    keep({ ...kept, request: { ...request, ...part } });
  const send = async () => {
    const controller = new AbortController();
    running.current = controller;
    setBusy(true);
    setFailure("");
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
      keep({ request, past: [call, ...past].slice(0, maxKept) });
    } catch (error) {
      if (!controller.signal.aborted) setFailure(messageOf(error));
    } finally {
      setBusy(false);
    }
  };
  const url = urlOf(fn) ?? `http://${name}.${namespace}.svc.cluster.local/`;
  return (
    <div class="console">
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
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
            <button key="send" type="submit" class="primary">
              <Icon name="play" />
              Send
            </button>
          )}
        </div>
        <Field label="Headers" hint="one per line, as in Content-Type: application/json">
          {(ids) => (
            <textarea
              {...ids}
              rows={3}
              value={request.headers}
              onInput={({ currentTarget }) => change({ headers: currentTarget.value })}
            />
          )}
        </Field>
        <Field label="Body" hint={request.method === "GET" ? "not sent with GET" : undefined}>
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
      <section class="panel" aria-label="Response">
        <div class="head">
          <h2>Response</h2>
          {answer && <Summary answer={answer} />}
        </div>
        {failure && (
          <div class="body">
            <Problem title="The request could not be sent" text={failure} />
          </div>
        )}
        <div class="answer" aria-live="polite" data-testid="answer" tabIndex={0}>
          {!answer && !failure && (
            <p class="muted">
              {isBusy ? "Waiting for the response …" : "Send a request to see the response here."}
            </p>
          )}
          {answer && (
            <div class="stack">
              <pre>{shown(answer)}</pre>
              {traceId !== undefined && (
                <p class="row wrap">
                  <span class="muted">Trace</span> <code>{traceId}</code>
                  <CopyButton text={traceId} label="Copy the trace’s id" />
                  <a href={`${paths.fn(namespace, name, "logs")}?q=${traceId}`}>
                    Find it in the logs
                  </a>
                </p>
              )}
              <details>
                <summary>{answer.headers.length} headers</summary>
                <pre class="muted">
                  {answer.headers.map(([name, value]) => `${name}: ${value}`).join("\n")}
                </pre>
              </details>
            </div>
          )}
        </div>
      </section>
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

function Summary({ answer }: { answer: CallAnswer }) {
  return (
    <span class="row wrap">
      <State tone={toneOf(answer.status)} pill>
        {answer.status}
      </State>
      <span class="muted" title="until the first byte, and until the last">
        {Math.round(answer.firstByteMs)} ms
        {answer.totalMs === undefined ? " …" : ` / ${Math.round(answer.totalMs)} ms`}
      </span>
      <span class="muted">{sizeOf(answer.bytes)}</span>
      {answer.coldStartMs !== undefined && (
        <State tone="busy" pill>
          cold start {Math.round(answer.coldStartMs)} ms
        </State>
      )}
    </span>
  );
}

const toneOf = (status: number) => (status < 400 ? "good" : status < 500 ? "warn" : "bad");

const sizeOf = (bytes: number): string =>
  bytes < 1024 ? `${bytes} B` : `${(bytes / 1024).toFixed(1)} KiB`;

/** JSON is shown with its structure, once all of it has arrived. */
function shown({ text, headers, totalMs }: CallAnswer): string {
  const type = headers.find(([name]) => name.toLowerCase() === "content-type")?.[1] ?? "";
  if (totalMs === undefined || !/\bjson\b/.test(type)) return text || "(empty body)";
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
