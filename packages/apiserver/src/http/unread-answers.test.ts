import { connect, type TLSSocket } from "node:tls";
import { type Agent } from "node:https";
import { load } from "js-yaml";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { decodeProtobuf } from "../protobuf/protobuf.ts";
import { ServerForUsers } from "./testing.ts";
import { dumpYaml } from "@spry/kube";

const MiB = 1024 * 1024;
const path = "/api/v1/namespaces/default/configmaps";
const table = "application/json;as=Table;v=v1;g=meta.k8s.io";
const partial = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
const protobuf = "application/vnd.kubernetes.protobuf";
const forms: [string, string, string][] = [
  ["JSON", "application/json", ""],
  ["YAML", "application/yaml", ""],
  ["protobuf", protobuf, ""],
  ["a table", table, ""],
  ["a table of whole objects", table, "?includeObject=Object"],
  ["metadata", partial, ""],
  ["metadata in protobuf", `${protobuf};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io`, ""],
  ["a watch in JSON", "application/json", "?watch=1"],
  ["a watch in protobuf", `${protobuf};stream=watch`, "?watch=1"],
  ["a watch of a table", table, "?watch=1&includeObject=Object"],
];
const connections = 40;
let users: ServerForUsers;
let mallory: Agent;
let alice: Agent;
const sockets: TLSSocket[] = [];

beforeAll(async () => {
  users = await ServerForUsers.start();
  mallory = users.user("mallory");
  alice = users.user("alice");
  const headers = { "content-type": "application/json" };
  for (let index = 0; index < 12; index++) {
    const annotations = { text: "y".repeat(100_000) };
    const body = {
      metadata: { name: `c-${index}`, annotations },
      data: { text: "x".repeat(180_000) },
    };
    const { code } = await users.ask(
      alice,
      { path, method: "POST", headers },
      JSON.stringify(body),
    );
    expect(code).toBe(201);
  }
});
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});
afterAll(() => users.stop());

/** A request whose answer is never read. */
function unread(agent: Agent, accept: string, query: string, at = path): void {
  const socket = connect({ ...agent.options, host: "127.0.0.1", port: users.port });
  socket.on("error", () => {});
  socket.pause();
  socket.write(`GET ${at}${query} HTTP/1.1\r\nhost: x\r\naccept: ${accept}\r\n\r\n`);
  sockets.push(socket);
}

const heldMiB = () => {
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / MiB;
};

test.each(forms)("answers that are not read hold little: %s", async (_, accept, query) => {
  const before = heldMiB();
  for (let index = 0; index < connections; index++) unread(mallory, accept, query);
  // Of each encoding, 60 answers of 4 to 10 MiB would be hundreds.
  await expect
    .poll(() => users.ask(alice, { path: `${path}/c-0` }).then(({ code }) => code))
    .toBe(200);
  await new Promise((resolve) => setTimeout(resolve, 1000));
  // What is garbage by now is collected a moment later.
  await expect.poll(() => heldMiB() - before).toBeLessThan(120);
});

test("medium answers that are not read are counted, and others get theirs", async () => {
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ metadata: { name: "medium" }, data: { text: "x".repeat(60_000) } });
  await users.ask(alice, { path, method: "POST", headers }, body);
  const before = heldMiB();
  for (let index = 0; index < 300; index++)
    unread(mallory, "application/json", "", `${path}/medium`);
  const { code, text } = await users.ask(alice, { path: `${path}/c-0` });
  expect([code, text.length > 250_000]).toEqual([200, true]);
  // What is garbage by now is collected a moment later.
  await expect.poll(() => heldMiB() - before).toBeLessThan(120);
});

test("lists in all encodings are what they are at once", async () => {
  const ask = async (accept: string, query = "") =>
    users.askBytes(alice, { path: path + query, headers: { accept } });
  const list = JSON.parse((await ask("application/json")).toString()) as Record<string, unknown>;
  expect(list).toMatchObject({ kind: "ConfigMapList", items: { length: expect.any(Number) } });
  const yaml = (await ask("application/yaml")).toString();
  expect(load(yaml)).toEqual(list);
  expect(yaml).toBe(dumpYaml(list, { isSorted: true }));
  const binary = decodeProtobuf(await ask(protobuf));
  const items = (list["items"] as Record<string, unknown>[]).map(({ data }) => data);
  expect((binary["items"] as Record<string, unknown>[]).map(({ data }) => data)).toEqual(items);
  const rows = JSON.parse((await ask(table)).toString()) as {
    rows: { cells: unknown[] }[];
    columnDefinitions: unknown[];
  };
  expect(rows.columnDefinitions.length).toBeGreaterThan(2);
  expect(rows.rows.map(({ cells }) => cells[0])).toContain("c-7");
  const metadata = JSON.parse((await ask(partial)).toString()) as {
    items: { kind: string; data?: unknown }[];
  };
  expect(metadata.items.every(({ kind, data }) => kind === "PartialObjectMetadata" && !data)).toBe(
    true,
  );
});
