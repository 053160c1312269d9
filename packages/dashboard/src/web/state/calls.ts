/** Requests to Functions from the console, and their responses. */
import { asUser } from "../api/client.ts";
import { type CallRequest, headersOf } from "./call-request.ts";

export interface CallAnswer {
  status: number;
  headers: [name: string, value: string][];
  firstByteMs: number;
  totalMs?: number;
  /** Milliseconds that the request waited for a Pod to start. */
  coldStartMs?: number;
  /** The part of the body that has arrived, at most `maxShownBytes`. */
  text: string;
  bytes: number;
}

/** What exceeds this is counted but not shown. */
const maxShownBytes = 1024 ** 2;
/** Often enough for a stream to be seen as one. */
const reportMs = 50;

/** Sends a request to a Function; `onProgress` gets the response as it arrives. Rejects with a message for the user. */
export async function callFunction(
  target: { namespace: string; name: string },
  { method, path, headers, body }: CallRequest,
  onProgress: (answer: CallAnswer) => void,
  signal: AbortSignal,
): Promise<CallAnswer> {
  const begin = performance.now();
  const head = { ...target, method, path, headers: headersOf(headers) };
  const hasBody = method !== "GET" && method !== "HEAD" && body !== "";
  const response = await asUser("/call", {
    method: "POST",
    body: `${JSON.stringify(head)}\n${hasBody ? body : ""}`,
    signal,
  });
  if (!response.ok || !response.body) {
    const { message } = (await response.json().catch(() => ({}))) as { message?: string };
    throw new Error(message ?? `the dashboard responded with ${response.status}`);
  }
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  let answer: CallAnswer | undefined;
  let pending = "";
  let timer: ReturnType<typeof setTimeout> | undefined;
  // Without this, what arrives before a long pause would not be shown.
  const report = () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      if (answer) onProgress({ ...answer });
    }, reportMs);
  };
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const text = decoder.decode(value, { stream: true });
      if (answer) add(answer, text, value.length);
      else {
        pending += text;
        const end = pending.indexOf("\n");
        if (end < 0) continue;
        answer = answerOf(pending.slice(0, end));
        add(answer, pending.slice(end + 1), pending.length - end - 1);
      }
      report();
    }
  } finally {
    clearTimeout(timer);
  }
  if (!answer) throw new Error("the connection was closed before a response arrived");
  return { ...answer, totalMs: performance.now() - begin };
}

function add(answer: CallAnswer, text: string, bytes: number): void {
  answer.bytes += bytes;
  if (answer.text.length < maxShownBytes) answer.text += text;
}

function answerOf(line: string): CallAnswer {
  const head = JSON.parse(line) as Pick<CallAnswer, "status" | "headers" | "firstByteMs">;
  const timing = head.headers.find(([name]) => name.toLowerCase() === "server-timing")?.[1] ?? "";
  const coldStart = /\bcoldstart;dur=([\d.]+)/.exec(timing)?.[1];
  return {
    ...head,
    text: "",
    bytes: 0,
    ...(coldStart !== undefined && { coldStartMs: Number(coldStart) }),
  };
}
