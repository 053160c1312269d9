import { type IncomingMessage, type ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { Readable } from "node:stream";
import { ListText } from "./list-text.ts";
import { MadeBody } from "./made-body.ts";
import { MemoryBudget } from "./memory-budget.ts";
import { type HttpBody, type HttpResponse, PacedBody } from "./message.ts";
import { PieceSource } from "./piece-source.ts";
import { pumpInto } from "./pump.ts";
import { TextSource } from "./text-source.ts";

/** From here on an answer leaves in slices: what a client does not read is not kept encrypted for it. */
const largeBytes = 64 * 1024;
/** One TLS record: all that a client who does not read holds in memory. */
const sliceBytes = 15 * 1024;
/** Of an answer in slices, besides what it is made from: a slice, and the same encrypted. */
const sendingBytes = 2 * sliceBytes;
/** Of one item that a list refers to. */
const placeBytes = 16;
/** Whether such an answer has been read is not looked after. */
const negligibleBytes = 4 * 1024;
/** Of a list, from which on it is sent without its length. */
const countedCharacters = 1024 * 1024;
/** Items of a list that are made at once. */
const fewItems = 20;

/** What all answers that their clients have not read yet may hold, in bytes. */
export function answerBudget(): MemoryBudget {
  return new MemoryBudget(64 * 1024 * 1024);
}

/** An answer on its way, and whose memory it takes. */
export interface Sending {
  incoming: IncomingMessage;
  outgoing: ServerResponse;
  answers: MemoryBudget;
  owner: string;
}

/** Sends an answer; resolves when the connection is done with it, or has all of a small one. */
export async function sendAnswer(sending: Sending, response: HttpResponse): Promise<void> {
  const { incoming, outgoing, owner } = sending;
  const { status, headers, body } = response;
  if (body instanceof PacedBody) {
    readPausably(incoming);
    outgoing.writeHead(status, headers);
    outgoing.flushHeaders();
    return pumpInto(outgoing, body.source, { sliceBytes, ends: false, owner });
  }
  if (body instanceof ReadableStream) {
    readPausably(incoming);
    outgoing.writeHead(status, headers);
    outgoing.flushHeaders();
    return pipeline(Readable.fromWeb(body as never), outgoing);
  }
  const large = incoming.method === "HEAD" ? undefined : largeAnswerOf(body);
  if (large) {
    readPausably(incoming);
    const { length, source } = large;
    outgoing.writeHead(
      status,
      length === undefined ? headers : { ...headers, "content-length": length },
    );
    hold(sending, large.heldBytes);
    const unpin = response.pin?.(() => outgoing.destroy());
    await pumpInto(outgoing, source, { sliceBytes, ends: true, owner });
    return unpin?.();
  }
  const content = body instanceof ListText ? body.toBytes() : (body ?? "");
  if (content instanceof MadeBody) throw new Error("an answer that is made is sent in slices");
  const length = Buffer.byteLength(content);
  if (length >= incoming.socket.writableHighWaterMark) readPausably(incoming);
  outgoing.writeHead(status, { ...headers, "content-length": length });
  outgoing.end(incoming.method === "HEAD" ? undefined : content);
  if (length > negligibleBytes && !outgoing.writableFinished) hold(sending, length);
}

/** Counts what an answer holds until its client has read it; when that is too much in all, the connection of who holds the most ends. */
function hold({ outgoing, answers, owner }: Sending, bytes: number): void {
  const lease = answers.open(owner, () => outgoing.destroy());
  outgoing.once("close", () => lease.close());
  lease.grow(bytes);
}

interface LargeAnswer {
  length: number | undefined;
  source: TextSource | PieceSource | MadeBody["source"];
  heldBytes: number;
}

function largeAnswerOf(body: HttpBody): LargeAnswer | undefined {
  if (body instanceof MadeBody)
    return { length: body.length, source: body.source, heldBytes: sendingBytes };
  if (body instanceof ListText) return largeListOf(body);
  if (body instanceof Uint8Array) {
    const { length } = body;
    if (length < largeBytes) return undefined;
    return { length, source: new PieceSource([body]), heldBytes: length + sendingBytes };
  }
  if (typeof body !== "string" || body.length < largeBytes / 3) return undefined;
  const length = Buffer.byteLength(body);
  if (length < largeBytes) return undefined;
  return { length, source: new TextSource([body]), heldBytes: length + sendingBytes };
}

/**
 * Of a list whose items are made one by one the length is not known before, and that of a long one is not counted: each client would
 * have the server read all of it.
 */
function largeListOf(list: ListText): LargeAnswer | undefined {
  const { count, areStored } = list.items;
  const characters = areStored ? list.characters() : 0;
  if (areStored ? characters < largeBytes : count <= fewItems) return undefined;
  const isCounted = areStored && characters < countedCharacters;
  const length = isCounted ? list.byteLength() : undefined;
  const heldBytes = count * placeBytes + sendingBytes;
  return { length, source: new TextSource(list.parts()), heldBytes };
}

/**
 * The next request can come before Node.js knows that the response to this one has been sent; it then pauses its
 * parser, but a TLS socket keeps feeding it what has been decrypted already: "Parse Error: Paused", and the
 * connection is cut. A listener for data replaces that direct way from the socket to the parser by one that can be
 * paused.
 */
function readPausably({ socket }: IncomingMessage): void {
  if (!socket.listeners("data").includes(nothing)) socket.on("data", nothing);
}

const nothing = () => undefined;
