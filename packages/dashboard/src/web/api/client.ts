/** The API server, for everything on the page: requests by `fetch`, streams over the tab's WebSocket. */
import { KubeClient, type Transport } from "@spry/kube/browser";
import { currentToken, loginEnded } from "../session/login.ts";
import { openStream } from "./tab-connection.ts";

/** How changes that are made here appear in `managedFields`. */
export const fieldManager = "spry-dashboard";

const transport: Transport = (request) => {
  const { pathname, search, searchParams } = new URL(request.url);
  const isStream = searchParams.get("watch") === "true" || searchParams.get("follow") === "true";
  return isStream
    ? streamed(pathname + search, request.signal)
    : fetched(pathname + search, request);
};

export const client = new KubeClient(transport, { fieldManager });

/** Requests a path of this server as the user. When the login has expired, the page asks for a new one. */
export async function asUser(path: string, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers);
  const token = currentToken();
  headers.set("authorization", `Bearer ${token}`);
  const response = await fetch(path, { ...init, headers });
  // An answer to the login before says nothing about the present one.
  if (response.status === 401 && token === currentToken()) loginEnded();
  return response;
}

async function fetched(path: string, request: Request): Promise<Response> {
  const hasBody = request.method !== "GET" && request.method !== "HEAD";
  return asUser(`/k8s${path}`, {
    method: request.method,
    headers: request.headers,
    signal: request.signal,
    ...(hasBody && { body: await request.text() }),
  });
}

function streamed(path: string, signal: AbortSignal): Promise<Response> {
  return new Promise((resolve, reject) => {
    const encoder = new TextEncoder();
    let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
    const body = new ReadableStream<Uint8Array>({
      start: (made) => void (controller = made),
      cancel: () => close(),
    });
    let hasEnded = false;
    const close = openStream(path, {
      onHead: (status, contentType) =>
        resolve(new Response(body, { status, headers: { "content-type": contentType } })),
      onData: (text) => {
        if (!hasEnded) controller?.enqueue(encoder.encode(text));
      },
      onEnd: (error) => {
        if (hasEnded) return;
        hasEnded = true;
        if (error === undefined) return controller?.close();
        controller?.error(new Error(error));
        reject(new Error(error));
      },
    });
    signal.addEventListener("abort", () => {
      close();
      if (hasEnded) return;
      hasEnded = true;
      controller?.error(signal.reason);
      reject(signal.reason as Error);
    });
  });
}
