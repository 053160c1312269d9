import { useMemo, useState } from "preact/hooks";
import { type CallAnswer, type CallError } from "../../state/calls.ts";
import { bytesText } from "../../state/registry.ts";
import {
  type BodyView,
  fileNameOf,
  hexOf,
  maxShown,
  pictureUrlOf,
  prettyOf,
  textOf,
  viewsOf,
} from "../../state/response-body.ts";
import { CopyButton, Problem, State } from "../../ui/basics.tsx";

const titles: Record<BodyView, string> = {
  pretty: "Pretty",
  raw: "Raw",
  hex: "Hex",
  picture: "Picture",
};

/** The response as it arrives, and what became of a request without one. */
export function ResponsePanel({
  name,
  answer,
  failure,
  isBusy,
  logs,
  traceId,
}: {
  name: string;
  answer: CallAnswer | undefined;
  failure: CallError | undefined;
  isBusy: boolean;
  /** Where the Function's output is. */
  logs: string;
  traceId: string | undefined;
}) {
  const found = traceId === undefined ? logs : `${logs}?q=${traceId}`;
  return (
    <section class="panel" aria-label="Response">
      <div class="head">
        <h2>Response</h2>
        {answer && <Summary answer={answer} />}
      </div>
      {failure && (
        <div class="body">
          <Problem
            title={failure.wasSent ? "It was sent, and no response arrived" : "It was not sent"}
            text={failure.message}
          >
            {failure.wasSent && (
              <p>
                The Function may have handled it: <a href={logs}>see what it wrote</a> before you
                send it again.
              </p>
            )}
          </Problem>
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
            {answer.status >= 500 && (
              <p>
                <a href={`${logs}?${during(answer)}`}>
                  See what the Function wrote during this request
                </a>
              </p>
            )}
            <Body name={name} answer={answer} />
            {traceId !== undefined && (
              <p class="row wrap">
                <span class="muted">Trace</span> <code>{traceId}</code>
                <CopyButton text={traceId} label="Copy the trace’s id" />
                <a href={found}>Find it in the logs</a>
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
  );
}

function Body({ name, answer }: { name: string; answer: CallAnswer }) {
  const views = useMemo(() => viewsOf(answer), [answer]);
  const [asked, setAsked] = useState<BodyView>();
  const view = asked !== undefined && views.includes(asked) ? asked : (views[0] ?? "raw");
  if (answer.bytes === 0) return <p class="muted">(empty body)</p>;
  const most = view === "hex" ? maxShown.hex : view === "picture" ? Infinity : maxShown.text;
  const shown = Math.min(most, answer.body.length);
  const download = () => {
    const url = URL.createObjectURL(new Blob([answer.body]));
    const link = document.createElement("a");
    link.href = url;
    link.download = fileNameOf(name, answer);
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  };
  return (
    <>
      <div class="row wrap">
        <div class="choice" role="group" aria-label="How to show the body">
          {views.map((each) => (
            <button
              key={each}
              type="button"
              aria-pressed={each === view}
              onClick={() => setAsked(each)}
            >
              {titles[each]}
            </button>
          ))}
        </div>
        <button type="button" class="small" onClick={download}>
          Download
        </button>
      </div>
      {shown < answer.bytes && (
        <p class="hint" role="status">
          {bytesText(shown)} of {bytesText(answer.bytes)} are shown; the download has{" "}
          {answer.body.length < answer.bytes
            ? `the first ${bytesText(answer.body.length)}`
            : "all of it"}
          .
        </p>
      )}
      {answer.isCut && <p class="hint">The response was cut: this is what had arrived.</p>}
      {view === "picture" ? (
        <img src={pictureUrlOf(answer)} alt={`The body of the response of ${name}`} />
      ) : (
        <pre class={view === "hex" ? "hex" : ""}>{shownAs(view, answer)}</pre>
      )}
    </>
  );
}

const shownAs = (view: BodyView, answer: CallAnswer): string =>
  view === "hex" ? hexOf(answer) : (view === "pretty" && prettyOf(answer)) || textOf(answer);

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
      <span class="muted">{bytesText(answer.bytes)}</span>
      {answer.coldStartMs !== undefined && (
        <State tone="busy" pill>
          cold start {Math.round(answer.coldStartMs)} ms
        </State>
      )}
    </span>
  );
}

/** Clocks differ a little, and what is written last arrives last. */
const aroundMs = 1_000;

/** The time of a request, for the address of the logs. */
function during({ sentAt, totalMs = 0 }: CallAnswer): string {
  const [from, to] = [sentAt - aroundMs, sentAt + totalMs + aroundMs];
  const text = (time: number) => new Date(time).toISOString();
  return `from=${text(from)}&to=${text(to)}`;
}

export const toneOf = (status: number) => (status < 400 ? "good" : status < 500 ? "warn" : "bad");
