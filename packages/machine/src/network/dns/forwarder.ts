import { createSocket } from "node:dgram";
import { connect, isIP } from "node:net";
import { readFileSync } from "node:fs";

const tryMs = 2_000;
const tries = 2;
const maxPending = 500;
const port = 53;

/** Hands questions on to the machine's own name servers, byte for byte. */
export class Forwarder {
  readonly #file: string;
  #pending = 0;

  /** `file`: the machine's resolv.conf; read each time, because networks change. */
  constructor(file = "/etc/resolv.conf") {
    this.#file = file;
  }

  /** The first response; undefined when none comes in time. */
  async ask(query: Buffer, transport: "udp" | "tcp"): Promise<Buffer | undefined> {
    if (this.#pending >= maxPending) return undefined;
    this.#pending++;
    try {
      const servers = nameServers(this.#file);
      for (let i = 0; i < tries; i++)
        for (const server of servers) {
          const answer = await (transport === "udp" ? askByUdp : askByTcp)(server, query);
          if (answer) return answer;
        }
      return undefined;
    } finally {
      this.#pending--;
    }
  }
}

function nameServers(file: string): string[] {
  try {
    const lines = readFileSync(file, "utf8").matchAll(/^\s*nameserver\s+(\S+)/gm);
    return [...lines].flatMap(([, server = ""]) => (isIP(server) ? server : [])).slice(0, 3);
  } catch {
    return [];
  }
}

function askByUdp(server: string, query: Buffer): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    // A socket of its own, so that no other response can be taken for this one.
    const socket = createSocket(isIP(server) === 6 ? "udp6" : "udp4");
    let isOver = false;
    const end = (answer?: Buffer) => {
      clearTimeout(timer);
      if (!isOver) socket.close();
      isOver = true;
      resolve(answer);
    };
    const timer = setTimeout(end, tryMs);
    socket.on("error", () => end());
    socket.on("message", (answer) => {
      if (answer.length >= 12 && answer.readUInt16BE(0) === query.readUInt16BE(0)) end(answer);
    });
    socket.connect(port, server, () => socket.send(query));
  });
}

function askByTcp(server: string, query: Buffer): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host: server, port, timeout: tryMs });
    let received = Buffer.alloc(0);
    const end = (answer?: Buffer) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("timeout", () => end());
    socket.on("error", () => end());
    socket.once("close", () => resolve(undefined));
    socket.on("data", (chunk) => {
      received = Buffer.concat([received, chunk]);
      if (received.length < 2) return;
      const size = received.readUInt16BE(0);
      if (received.length >= size + 2) end(received.subarray(2, size + 2));
    });
    const length = Buffer.alloc(2);
    length.writeUInt16BE(query.length);
    socket.write(Buffer.concat([length, query]));
  });
}
