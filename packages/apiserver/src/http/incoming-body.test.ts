import { type ClientRequest } from "node:http";
import { type Agent } from "node:https";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { ownerOf } from "./owner.ts";
import { type Answer, answerOf, ServerForUsers } from "./testing.ts";

const MiB = 1024 * 1024;
let users: ServerForUsers;
let mallory: Agent;
let alice: Agent;
const opened: ClientRequest[] = [];

beforeAll(async () => {
  users = await ServerForUsers.start({ bodyBytes: 32 * MiB });
  mallory = users.user("mallory");
  alice = users.user("alice");
});
afterEach(() => {
  for (const each of opened.splice(0)) each.destroy();
});
afterAll(() => users.stop());

const path = "/api/v1/namespaces/default/configmaps";
const headers = { "content-type": "application/json" };
let count = 0;
const configMap = (length: number) =>
  JSON.stringify({ metadata: { name: `c-${count++}` }, data: { text: "x".repeat(length) } });

/** A body of which the end never comes; its answer, if there is one. */
function unfinished(agent: Agent, length: number): { answer: Promise<Answer | undefined> } {
  const outgoing = users.open(agent, {
    path,
    method: "POST",
    headers: { ...headers, "content-length": length + 1 },
  });
  opened.push(outgoing);
  const answer = answerOf(outgoing).catch(() => undefined);
  outgoing.write(configMap(length).slice(0, length));
  return { answer };
}

test("who has the most unfinished bodies is refused first, and may come again", async () => {
  const bodies = Array.from({ length: 40 }, () => unfinished(mallory, 2.5 * MiB));
  const refused = await Promise.race(bodies.map(({ answer }) => answer));
  expect(refused).toMatchObject({ code: 429, headers: { "retry-after": "1" } });
  expect(refused?.text).toContain("the bodies of requests under way use up the memory for them");
});

test("while one user uses up all memory for bodies, bodies of others pass", async () => {
  const bodies = Array.from({ length: 40 }, () => unfinished(mallory, 2.5 * MiB));
  await Promise.race(bodies.map(({ answer }) => answer));
  const lengths = [10, 10_000, 300_000, 1_000_000];
  const answers = await Promise.all(
    lengths.map((length) => users.ask(alice, { path, method: "POST", headers }, configMap(length))),
  );
  expect(answers.map(({ code }) => code)).toEqual([201, 201, 201, 201]);
});

test("a client that goes away leaves its memory to others", async () => {
  const bodies = Array.from({ length: 40 }, () => unfinished(mallory, 2.5 * MiB));
  await Promise.race(bodies.map(({ answer }) => answer));
  for (const each of opened.splice(0)) each.destroy();
  const options = { path, method: "POST", headers };
  await expect
    .poll(async () => (await users.ask(mallory, options, configMap(1_000_000))).code)
    .toBe(201);
});

test("a body in pieces of a byte is read whole", async () => {
  const body = configMap(20_000);
  const outgoing = users.open(alice, { path, method: "POST", headers });
  const answer = answerOf(outgoing);
  outgoing.setNoDelay(true);
  for (const character of body) outgoing.write(character);
  outgoing.end();
  const { code, text } = await answer;
  expect(code).toBe(201);
  expect((JSON.parse(text) as { data: { text: string } }).data.text).toHaveLength(20_000);
});

test("all ServiceAccounts of a namespace are one owner", () => {
  const owner = (name: string) => ownerOf({ name, groups: [] });
  expect(owner("system:serviceaccount:a:one")).toBe(owner("system:serviceaccount:a:two"));
  expect(owner("system:serviceaccount:a:one")).not.toBe(owner("system:serviceaccount:b:one"));
  expect(owner("alice")).toBe("alice");
});
