import { type Socket } from "node:net";
import { type Duplex } from "node:stream";
import { type Clock } from "@spry/kube";
import { type ResponseHeaders } from "../attempt/attempt.ts";
import { withCors, withCorsOf } from "../exposure/answers.ts";
import { type ErrorResponse, sendErrorResponse, withRequestId } from "../http/error-response.ts";
import { responseHeaders } from "../http/forwarded-headers.ts";
import { isModern } from "../http/request-head.ts";
import { joinTunnel } from "../http/tunnel.ts";
import { forTunnel, isolated } from "../pages/by-path.ts";
import { type Passage, type UpgradeSocket } from "./passage.ts";

/** How long a client may still send a body that is not read any more. */
const restMs = 1_000;
/** A body of up to this size that is complete with its head is sent with it, in one piece. */
const maxAtOnceBytes = 8 * 1024;

/** What the client of one request receives: a Pod's response as it comes, or one of the gateway's own. */
export class ClientReply {
  readonly #passage: Passage;
  /** Whether its head has just been received: what else has come along with it is about to follow. */
  #isBeginning = false;
  /** The body's first piece, until it is known whether that is all of it. */
  #first: Buffer | undefined;
  /** Of a response that may be a head alone. */
  #head: { status: number; headers: string[] } | undefined;
  #isOver = false;

  constructor(passage: Passage) {
    this.#passage = passage;
  }

  /** The client waits for this before it sends the request's body (RFC 9110 section 10.1.1). */
  askForBody(): void {
    this.#passage.response.writeContinue();
  }

  /** An interim response of the Pod's (1xx). */
  inform(status: number, headers: ResponseHeaders): void {
    const { request, response } = this.#passage;
    if (status === 103 && headers.link && isModern(request))
      response.writeEarlyHints({ link: headers.link });
  }

  /** The head of a Pod's response; `coldMs` is how long the request has waited for a Pod to start, if it had to. */
  begin(status: number, headers: ResponseHeaders, coldMs: number | undefined): void {
    const { exposed, prefix, requestId, response } = this.#passage;
    const own = responseHeaders(headers, requestId);
    const out = exposed ? withCors(own, exposed) : prefix ? isolated(own, prefix) : own;
    // W3C Server Timing: browsers and tools show it.
    if (coldMs !== undefined) out.push("server-timing", `coldstart;dur=${coldMs}`);
    if (response.respondWhole && headers["grpc-status"] !== undefined) {
      // If nothing follows, it ends with its head: a client of gRPC takes anything else for a broken response.
      this.#head = { status, headers: out };
      return;
    }
    response.writeHead(status, out);
    // What has come along with the head is written with it; a body that comes later must not hold the head back.
    this.#isBeginning = true;
    queueMicrotask(() => {
      if (this.#isOver || !this.#isBeginning) return;
      this.#isBeginning = false;
      if (this.#first) this.#writeFirst();
      else response.flushHeaders();
    });
  }

  /** False: no more before `onDrain`. */
  write(chunk: Buffer, onDrain: () => void): boolean {
    const { response } = this.#passage;
    this.#writeHeldHead();
    if (this.#isBeginning && !this.#first && chunk.length <= maxAtOnceBytes) {
      this.#first = chunk;
      return true;
    }
    this.#isBeginning = false;
    this.#writeFirst();
    if (response.write(chunk)) return true;
    response.once("drain", onDrain);
    return false;
  }

  /** Ends a Pod's response; returns its status. */
  end(trailers: Record<string, string | string[] | undefined>): number {
    const { response } = this.#passage;
    const head = this.#head;
    if (head && Object.keys(trailers).length === 0) {
      this.#head = undefined;
      response.respondWhole?.(head.status, head.headers);
      return head.status;
    }
    this.#writeHeldHead();
    const hasTrailers = Object.keys(trailers).length > 0;
    if (this.#first && !hasTrailers) {
      // With the head, a string is one system call; bytes are several pieces. Latin-1 keeps each byte as it is.
      response.end(this.#first.toString("latin1"), "latin1");
    } else {
      this.#writeFirst();
      if (hasTrailers) response.addTrailers(trailers);
      response.end();
    }
    return response.statusCode;
  }

  /**
   * After the end of a response of a Pod that has not read everything: the client may not look for it before it has sent
   * everything, but not without bounds.
   */
  readRest(clock: Clock): void {
    const { request } = this.#passage;
    const cancel = clock.after(restMs, () => request.socket.destroy());
    request.once("end", cancel).resume();
  }

  /** After `101 Switching Protocols`: the connections of both sides become one. */
  joinTunnel(
    upgrade: UpgradeSocket,
    { status, headers, socket }: { status: number; headers: ResponseHeaders; socket: Duplex },
  ): void {
    upgrade.detach();
    const sent = this.#passage.prefix ? forTunnel(headers) : headers;
    joinTunnel(upgrade, socket as Socket, status, sent);
  }

  /** A response of the gateway's own; false when a Pod's has begun, and all that was left was to break it off visibly. */
  refuse(error: ErrorResponse): boolean {
    const { request, response, exposed, isPublic, requestId } = this.#passage;
    if (response.headersSent) {
      response.destroy();
      return false;
    }
    const answer = withRequestId(withCorsOf(error, exposed), requestId);
    sendErrorResponse(request, response, answer, isPublic || exposed !== undefined);
    return true;
  }

  /** Breaks the connection. */
  breakOff(): void {
    this.#passage.response.destroy();
  }

  /** The request has ended: nothing more is written. */
  close(): void {
    this.#isOver = true;
  }

  #writeFirst(): void {
    const first = this.#first;
    this.#first = undefined;
    if (first) this.#passage.response.write(first);
  }

  #writeHeldHead(): void {
    const head = this.#head;
    this.#head = undefined;
    if (head) this.#passage.response.writeHead(head.status, head.headers);
  }
}
