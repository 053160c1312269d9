import { query, setQuery } from "../../router.ts";
import { RequestConsole } from "./request-console.tsx";
import { SocketConsole } from "./socket-console.tsx";
import { type TabProps } from "./tab-props.ts";

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
