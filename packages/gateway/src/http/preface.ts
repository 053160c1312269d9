import { type Socket } from "node:net";
import { type Clock } from "@spry/kube";

/** HTTP/2 with prior knowledge begins with it (RFC 9113 section 3.4); a request of HTTP/1.1 may begin like it, but not with all of it. */
const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

export interface Protocols {
  first: (socket: Socket) => void;
  second: (socket: Socket) => void;
}

/**
 * Gives a connection on clear text to the server of the protocol that its first bytes are of, with these bytes still to be
 * read. One that says nothing for `waitMs` is closed. Returns those that have not been given away yet.
 */
export function createProtocolChoice(
  { first, second }: Protocols,
  clock: Clock,
  waitMs: number,
): { choose: (socket: Socket) => void; undecided: ReadonlySet<Socket> } {
  const undecided = new Set<Socket>();
  return {
    undecided,
    choose(socket) {
      let head: Buffer = Buffer.alloc(0);
      undecided.add(socket);
      const stopWaiting = clock.after(waitMs, () => socket.destroy());
      const decided = () => {
        stopWaiting();
        undecided.delete(socket);
        socket.off("data", read).off("error", destroy).off("end", destroy).off("close", decided);
      };
      const destroy = () => void socket.destroy();
      const read = (chunk: Buffer) => {
        head = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
        const length = Math.min(head.length, preface.length);
        const isPreface = preface.subarray(0, length).equals(head.subarray(0, length));
        if (isPreface && length < preface.length) return;
        decided();
        socket.pause();
        socket.unshift(head);
        if (isPreface) second(socket);
        else first(socket);
        if (!isPreface) socket.resume();
      };
      socket.on("data", read).on("error", destroy).on("end", destroy).once("close", decided);
    },
  };
}
