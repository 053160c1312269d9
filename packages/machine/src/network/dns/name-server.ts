import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { resolve4 } from "node:dns/promises";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { type ServiceView } from "../cluster-view.ts";
import { ClusterZone } from "./cluster-zone.ts";
import { Forwarder } from "./forwarder.ts";
import {
  addressData,
  type Answer,
  readQuestion,
  recordTypes,
  responseCodes,
  writeReply,
} from "./message.ts";

const plainUdpSize = 512;
const largestUdpSize = 1232;
const tcpSize = 65_535;
const idleMs = 10_000;
const maxConnections = 200;
const bindTries = 20;
const aliasTtl = 5;

/** A name server for Pods: the cluster's names from memory, all others from the machine's servers. */
export class NameServer {
  readonly #zone = new ClusterZone();
  readonly #forwarder: Forwarder;
  readonly #udp: UdpSocket;
  readonly #tcp: Server;

  private constructor(udp: UdpSocket, tcp: Server, forwarder: Forwarder) {
    this.#udp = udp;
    this.#tcp = tcp;
    this.#forwarder = forwarder;
    udp.on("error", () => {});
    udp.on("message", (query, from) => {
      const send = (reply: Buffer) => udp.send(reply, from.port, from.address, () => {});
      void this.#answer(query, "udp").then((reply) => reply && send(reply));
    });
    tcp.on("connection", (socket) => this.#serve(socket));
  }

  /** Listens on one free port of the address, with both protocols. */
  static async listen(host: string, forwarder = new Forwarder()): Promise<NameServer> {
    for (let left = bindTries; ; left--) {
      const udp = createSocket("udp4");
      const tcp = createServer();
      tcp.maxConnections = maxConnections;
      try {
        const port = await bindUdp(udp, host);
        await bindTcp(tcp, host, port);
        udp.unref();
        tcp.unref();
        return new NameServer(udp, tcp, forwarder);
      } catch (error) {
        udp.close();
        // The port is free with one protocol only.
        if (left === 0 || (error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
      }
    }
  }

  get port(): number {
    return (this.#tcp.address() as AddressInfo).port;
  }

  update(services: readonly ServiceView[]): void {
    this.#zone.update(services);
  }

  close(): void {
    this.#udp.close();
    this.#tcp.close();
  }

  #serve(socket: Socket): void {
    let received = Buffer.alloc(0);
    socket.setTimeout(idleMs, () => socket.destroy());
    socket.on("error", () => socket.destroy());
    socket.on("data", (chunk) => {
      received = Buffer.concat([received, chunk]);
      while (received.length >= 2 && received.length >= received.readUInt16BE(0) + 2) {
        const size = received.readUInt16BE(0);
        const query = received.subarray(2, size + 2);
        received = received.subarray(size + 2);
        const send = (reply: Buffer) => {
          const length = Buffer.alloc(2);
          length.writeUInt16BE(reply.length);
          if (!socket.destroyed) socket.write(Buffer.concat([length, reply]));
        };
        void this.#answer(query, "tcp").then((reply) => reply && send(reply));
      }
    });
  }

  async #answer(query: Buffer, transport: "udp" | "tcp"): Promise<Buffer | undefined> {
    const question = readQuestion(query);
    if (!question) return undefined;
    // A query with additional records says by EDNS that it takes more (RFC 6891).
    const hasExtension = query.length >= 12 && query.readUInt16BE(10) > 0;
    const limit = transport === "tcp" ? tcpSize : hasExtension ? largestUdpSize : plainUdpSize;
    const found = this.#zone.answer(question.name, question.type);
    if (found?.alias !== undefined && question.type === recordTypes.A)
      found.answers.push(...(await addressesOf(found.alias)));
    if (found) return writeReply(query, question, found, limit);
    const answer = await this.#forwarder.ask(query, transport);
    const failure = { code: responseCodes.serverFailure, answers: [] };
    return answer ?? writeReply(query, question, failure, limit);
  }
}

/** Of an alias outside of the cluster, from the machine's servers. */
async function addressesOf(name: string): Promise<Answer[]> {
  const ips = await resolve4(name).catch(() => []);
  return ips.map((ip) => ({ name, type: recordTypes.A, ttl: aliasTtl, data: addressData(ip) }));
}

function bindUdp(socket: UdpSocket, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    socket.once("error", reject);
    socket.bind({ port: 0, address: host }, () => {
      socket.off("error", reject);
      resolve(socket.address().port);
    });
  });
}

function bindTcp(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port }, () => {
      server.off("error", reject);
      // Of a connection that could not be accepted, for want of a descriptor: the next one may be.
      server.on("error", () => {});
      resolve();
    });
  });
}
