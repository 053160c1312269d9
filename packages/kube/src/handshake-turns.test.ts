import { EventEmitter } from "node:events";
import { Socket } from "node:net";
import { type Server } from "node:tls";
import { setImmediate as nextRound, setTimeout as pause } from "node:timers/promises";
import { beforeEach, expect, test } from "vitest";
import { beginHandshakesInTurns, sliceMs } from "./handshake-turns.ts";

let server: EventEmitter;
/** The clients whose handshakes have begun, in that order. */
let begun: string[];
beforeEach(() => {
  // The rounds of an earlier test may go on.
  const mine: string[] = (begun = []);
  server = new EventEmitter();
  server.on("connection", (socket: Client) => mine.push(socket.name));
  beginHandshakesInTurns(server as Server);
});

class Client extends Socket {
  readonly name: string;

  constructor(name: string, address: string) {
    super();
    this.name = name;
    Object.defineProperty(this, "remoteAddress", { value: address });
  }
}

function connect(name: string, address = "10.0.0.1"): Client {
  const client = new Client(name, address);
  server.emit("connection", client);
  return client;
}
const burst = (count: number) => {
  for (let index = 0; index < count; index++) connect(`${index}`);
};

/** After a round without a new connection. */
const accepted = () => nextRound();

test("handshakes wait until the connections of a burst are accepted", async () => {
  for (let index = 0; index < 10; index++) {
    connect(`${index}`);
    await nextRound();
  }
  expect(begun).toEqual([]);
  await nextRound();
  expect(begun).toEqual(["9", "8", "7", "0"]);
});

test("handshakes do not wait for a burst that does not end", async () => {
  for (let index = 0; index < 25; index++) {
    connect(`${index}`);
    await nextRound();
  }
  expect(begun).toEqual(["19", "18", "17", "0"]);
});

test("work is done in short slices while clients connect", async () => {
  await pause(20);
  expect(sliceMs()).toBe(5);
  connect("one");
  expect(sliceMs()).toBeLessThan(1);
});

test("of a burst four handshakes begin in one round, the newest first and the oldest last", async () => {
  burst(10);
  await accepted();
  expect(begun).toEqual([]);
  await nextRound();
  expect(begun).toEqual(["9", "8", "7", "0"]);
  await nextRound();
  expect(begun.slice(4)).toEqual(["6", "5", "4", "1"]);
  await nextRound();
  expect(begun.slice(8)).toEqual(["3", "2"]);
});

test("a client that comes by itself does not wait for a burst of its own address", async () => {
  burst(100);
  await accepted();
  await nextRound();
  connect("alone");
  await accepted();
  await nextRound();
  expect(begun.indexOf("alone")).toBe(4);
});

test("a client of another address has its turn in the same round", async () => {
  burst(100);
  connect("other", "10.0.0.2");
  burst(100);
  await accepted();
  await nextRound();
  expect(begun).toContain("other");
});

test("a client that leaves before its turn is left out", async () => {
  burst(2);
  connect("gone").destroy(new Error("read ECONNRESET"));
  await accepted();
  await nextRound();
  expect(begun).toEqual(["1", "0"]);
});

test("every client of a burst has its turn", async () => {
  burst(50);
  await accepted();
  for (let round = 0; round < 13; round++) await nextRound();
  expect(begun.toSorted((a, b) => Number(a) - Number(b))).toEqual(
    Array.from({ length: 50 }, (_, index) => `${index}`),
  );
});
