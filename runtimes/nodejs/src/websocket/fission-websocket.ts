import { type FunctionHandler, type UserFunction } from "../handler.ts";
import { webSocketsOnly } from "../request-handler.ts";
import { type CloseEvent, type MessageEvent, type ServerWebSocket } from "./server-websocket.ts";

/** `(ws, clients)` of Fission: called for each WebSocket, with all that are open. Sockets are like those of `ws`. */
export function fissionWebSocket(handler: UserFunction): FunctionHandler {
  const clients = new Set<Client>();
  return {
    ...webSocketsOnly,
    websocket(socket) {
      const client = new Client(socket as ServerWebSocket);
      clients.add(client);
      client.on("close", () => clients.delete(client));
      return handler(client, clients);
    },
  };
}

type Listener = (...values: unknown[]) => unknown;

/** `on("message", (data, isBinary) => …)`; of a text the data is a string, so that what is sent back is one again. */
class Client {
  readonly #socket: ServerWebSocket;

  constructor(socket: ServerWebSocket) {
    this.#socket = socket;
  }

  get readyState(): number {
    return this.#socket.readyState;
  }

  on(name: string, listener: Listener): this {
    return this.#listen(name, listener, false);
  }

  once(name: string, listener: Listener): this {
    return this.#listen(name, listener, true);
  }

  #listen(name: string, listener: Listener, once: boolean): this {
    this.#socket.addEventListener(name, (event) => void listener(...valuesOf(event)), { once });
    return this;
  }

  send(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#socket.send(data);
  }

  close(code?: number, reason?: string): void {
    this.#socket.close(code, reason);
  }
}

function valuesOf(event: Event): unknown[] {
  if (event.type === "message") {
    const { data } = event as MessageEvent;
    return [data, typeof data !== "string"];
  }
  if (event.type !== "close") return [(event as Event & { error?: unknown }).error];
  const { code, reason } = event as CloseEvent;
  return [code, Buffer.from(reason)];
}
