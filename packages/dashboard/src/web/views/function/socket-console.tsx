import { useEffect, useRef, useState } from "preact/hooks";
import { type Conversation, openConversation } from "../../api/tab-connection.ts";
import { info } from "../../state/info.ts";
import { printable } from "../../state/log-text.ts";
import { Field, Problem, State } from "../../ui/basics.tsx";
import { useKept } from "../../ui/use-kept.ts";
import { type TabProps } from "./tab-props.ts";

interface Line {
  id: number;
  at: string;
  isOurs: boolean;
  text: string;
}

/** How many messages are shown. */
const maxLines = 500;
/** The server takes messages of 16 KiB with all that is around them. */
const maxMessageLength = 12 * 1024;

const nothingTyped = { path: "/", text: "" };
const typedShape = { path: "text", text: "text" } as const;

/** A WebSocket to the Function: what is sent and received, in the order in which it happens. */
export function SocketConsole({ fn }: Pick<TabProps, "fn">) {
  const { namespace = "", name = "" } = fn.metadata;
  const typed = useKept(`socket ${namespace}/${name}`, nothingTyped, typedShape);
  const { path, text } = typed.value;
  const setPath = (path: string) => typed.change({ path });
  const setText = (text: string) => typed.change({ text });
  const [lines, setLines] = useState<Line[]>([]);
  const [failure, setFailure] = useState("");
  const [phase, setPhase] = useState<"closed" | "opening" | "open">("closed");
  const conversation = useRef<Conversation | undefined>(undefined);
  const nextLine = useRef(1);
  useEffect(() => () => conversation.current?.close(), []);
  const add = (isOurs: boolean, text: string) => {
    const at = new Date().toISOString().slice(11, 23);
    const line = { id: nextLine.current++, at, isOurs, text };
    setLines((before) => [...before, line].slice(-maxLines));
  };
  const connect = () => {
    setFailure("");
    setPhase("opening");
    conversation.current = openConversation(
      { namespace, name, path },
      {
        onHead: () => setPhase("open"),
        onData: () => {},
        onMessage: ({ text, bytes }) =>
          add(false, text === undefined ? `(${bytes} bytes that are not text)` : printable(text)),
        onEnd: (error) => {
          setPhase("closed");
          setFailure(error ?? "");
        },
      },
    );
  };
  const send = () => {
    conversation.current?.say(text);
    add(true, text);
    setText("");
  };
  if (!info.value?.hasWebSockets) {
    return (
      <Problem
        tone="warn"
        title="WebSockets are not available here"
        text="This dashboard has neither a gateway nor an API server that carries them."
      />
    );
  }
  return (
    <div class="console">
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (phase === "open") send();
          else if (phase === "closed") connect();
        }}
      >
        <div class="row">
          <input
            class="grow mono"
            aria-label="Path and query"
            value={path}
            disabled={phase !== "closed"}
            onInput={({ currentTarget }) => setPath(currentTarget.value)}
          />
          {phase === "closed" ? (
            <button key="connect" type="submit" class="primary">
              Connect
            </button>
          ) : (
            <button key="close" type="button" onClick={() => conversation.current?.close()}>
              Close
            </button>
          )}
        </div>
        <Field label="Message">
          {(ids) => (
            <textarea
              {...ids}
              rows={4}
              maxLength={maxMessageLength}
              value={text}
              onInput={({ currentTarget }) => setText(currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key !== "Enter" || event.shiftKey || phase !== "open") return;
                event.preventDefault();
                send();
              }}
            />
          )}
        </Field>
        <div class="row">
          <button type="submit" disabled={phase !== "open"}>
            Send
          </button>
          <span class="muted">Enter sends, Shift-Enter begins a new line.</span>
        </div>
      </form>
      <section class="panel" aria-label="Messages">
        <div class="head">
          <h2>Messages</h2>
          <span role="status">
            <State tone={phase === "open" ? "good" : phase === "opening" ? "busy" : "idle"} pill>
              {phase}
            </State>
          </span>
        </div>
        {failure && (
          <div class="body">
            <Problem title="The connection has ended" text={failure} />
          </div>
        )}
        <div class="answer" role="log" aria-label="Messages" data-testid="messages" tabIndex={0}>
          {lines.length === 0 && (
            <p class="muted">Connect, and what the Function sends appears here.</p>
          )}
          {lines.map(({ id, at, isOurs, text }) => (
            <div key={id} class="message">
              <span class="muted mono">
                {at} {isOurs ? "→" : "←"}
              </span>
              <span class="sr">{isOurs ? "sent" : "received"}</span>
              <pre>{text}</pre>
            </div>
          ))}
        </div>
      </section>
    </div>
  );
}
