/** What one namespace may take of what all share: uploads, memory, room, questions to the cluster. */
import { request } from "node:http";
import { describe, expect, test } from "vitest";
import { digestOf, mediaTypes } from "../index.ts";
import { startRegistry } from "../testing/registry.ts";
import { codeOf } from "../testing/registry-requests.ts";
import { createLogins, type Login } from "./access/logins.ts";

const logins = createLogins("k".repeat(64));
const loginOf = (namespace: string) => logins.namespace({ namespace, uid: `${namespace}-1` });
const headerOf = ({ username, password }: Login) =>
  `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;

async function start(options: { quotaBytes?: number } = {}) {
  let asked = 0;
  let answer = () => Promise.resolve(true);
  let now = Date.now();
  const { url, registry } = await startRegistry({
    ...options,
    logins,
    clock: { now: () => now, elapsed: () => now },
    tenants: {
      async namespaceUid(name) {
        asked++;
        return (await answer()) ? `${name}-1` : undefined;
      },
      async isJobActive() {
        asked++;
        return answer();
      },
    },
  });
  const send = (login: Login, method: string, path: string, body?: string, type = "") =>
    fetch(`${url}/v2/${path}`, {
      method,
      headers: { authorization: headerOf(login), ...(type ? { "content-type": type } : {}) },
      ...(body === undefined ? {} : { body }),
    });
  const putBlob = (namespace: string, text: string, repository = `${namespace}/fn`) =>
    send(loginOf(namespace), "POST", `${repository}/blobs/uploads/?digest=${digestOf(text)}`, text);
  return {
    url,
    registry,
    send,
    putBlob,
    questions: () => asked,
    answers: (next: () => Promise<boolean>) => void (answer = next),
    pass: (ms: number) => void (now += ms),
  };
}

test("namespaces that open as many uploads as they can leave some for every other", async () => {
  const { send } = await start();
  const open = (namespace: string) =>
    send(loginOf(namespace), "POST", `${namespace}/fn/blobs/uploads/`);
  for (const greedy of ["a", "b", "c", "d", "e", "f"]) {
    let opened = 0;
    while ((await open(greedy)).status === 202) opened++;
    expect(opened).toBeGreaterThan(0);
  }
  for (let count = 0; count < 4; count++) expect((await open("shop")).status).toBe(202);
});

describe("manifests on their way", () => {
  const size = 4 * 1024 * 1024;

  test("of one namespace take a share of the memory, and leave the rest to others", async () => {
    const { url, send, putBlob } = await start();
    const sending = Array.from({ length: 24 }, (_, number) => {
      const each = request(`${url}/v2/shop/fn/manifests/v${number}`, {
        method: "PUT",
        headers: { authorization: headerOf(loginOf("shop")), "content-length": size },
      });
      const status = new Promise<number | undefined>((resolve) => {
        each.on("response", (answer) => resolve(answer.resume().statusCode));
        each.on("error", () => resolve(undefined));
      });
      // All but the end: it stays in memory.
      each.write(Buffer.alloc(size - 1, " "));
      return { each, status };
    });
    const refused = () =>
      Promise.all(
        sending.map(({ status }) => Promise.race([status, Promise.resolve("waits" as const)])),
      );
    await expect
      .poll(async () => (await refused()).filter((status) => status === 429).length)
      .toBeGreaterThanOrEqual(16);
    // Another namespace is not affected.
    const config = "{}";
    expect((await putBlob("bank", config)).status).toBe(201);
    const manifest = JSON.stringify({
      schemaVersion: 2,
      mediaType: mediaTypes.manifest,
      config: { mediaType: mediaTypes.config, digest: digestOf(config), size: config.length },
      layers: [],
    });
    const put = () =>
      send(loginOf("bank"), "PUT", "bank/fn/manifests/v1", manifest, mediaTypes.manifest);
    expect((await put()).status).toBe(201);
    for (const { each } of sending) each.destroy();
    // What was held is free again.
    await putBlob("shop", config);
    await expect
      .poll(async () => {
        const body = manifest.padEnd(size - 1);
        const path = "shop/fn/manifests/v1";
        return (await send(loginOf("shop"), "PUT", path, body, mediaTypes.manifest)).status;
      })
      .toBe(201);
  });

  test("that refer to another have short annotations, and their list comes in parts", async () => {
    const { send, putBlob } = await start();
    const config = "{}";
    await putBlob("shop", config);
    const entry = {
      mediaType: mediaTypes.config,
      digest: digestOf(config),
      size: config.length,
    };
    const subject = { mediaType: mediaTypes.manifest, digest: digestOf("image"), size: 5 };
    const push = (length: number, number = 0) => {
      const annotations = { filler: "x".repeat(length), number: `${number}` };
      const manifest = { schemaVersion: 2, config: entry, layers: [], subject, annotations };
      const body = JSON.stringify({ ...manifest, mediaType: mediaTypes.manifest });
      const path = `shop/fn/manifests/${digestOf(body)}`;
      return send(loginOf("shop"), "PUT", path, body, mediaTypes.manifest);
    };
    expect(await codeOf(await push(1_000_000))).toBe("413 MANIFEST_INVALID");
    for (let number = 0; number < 70; number++)
      expect((await push(63_000, number)).status).toBe(201);
    const found: string[] = [];
    let path: string | undefined = `shop/fn/referrers/${subject.digest}`;
    let parts = 0;
    while (path !== undefined) {
      const answer: Response = await send(loginOf("shop"), "GET", path);
      const text = await answer.text();
      expect(text.length).toBeLessThanOrEqual(4 * 1024 * 1024);
      const { manifests } = JSON.parse(text) as { manifests: { digest: string }[] };
      found.push(...manifests.map(({ digest }) => digest));
      path = /^<\/v2\/(.*)>; rel="next"$/.exec(answer.headers.get("link") ?? "")?.[1];
      parts++;
    }
    expect(new Set(found).size).toBe(70);
    expect(found).toHaveLength(70);
    expect(parts).toBe(2);
  });
});

describe("the quota", () => {
  const quotaBytes = 100_000;

  test("is filled by no namespace alone: the next ones can still build", async () => {
    const { putBlob, registry } = await start({ quotaBytes });
    const fill = async (namespace: string, bytes: number) => {
      let stored = 0;
      for (let number = 0; number < 200; number++) {
        const text = `${namespace} ${number} `.padEnd(bytes, "x");
        const answer = await putBlob(namespace, text);
        if (answer.status !== 201) return { stored, why: await answer.text() };
        stored += bytes;
      }
      return { stored, why: "" };
    };
    const greedy = await fill("greedy", 1000);
    expect(greedy.stored).toBeLessThanOrEqual(85_000);
    expect(greedy.stored).toBeGreaterThan(80_000);
    expect(greedy.why).toMatch(/DENIED.*nearly full.*greedy.*delete Functions/);
    for (const namespace of ["a", "b", "c"])
      expect((await fill(namespace, 500)).stored).toBeGreaterThanOrEqual(2000);
    // The same after it has been counted again.
    await registry.clean({ references: [], functions: [] });
    expect((await fill("greedy", 500)).stored).toBe(0);
    expect((await fill("d", 500)).stored).toBeGreaterThanOrEqual(1500);
  });

  test("counts content once that several repositories of a namespace have", async () => {
    const { putBlob } = await start({ quotaBytes });
    expect((await putBlob("other", "o".repeat(82_000))).status).toBe(201);
    const text = "x".repeat(1_000);
    for (const name of ["one", "two", "three"])
      expect((await putBlob("shop", text, `shop/${name}`)).status).toBe(201);
    // 83 of 100 are taken, 1 by the namespace: of the 17 a quarter is its share.
    expect((await putBlob("shop", "y".repeat(3200), "shop/four")).status).toBe(201);
    expect((await putBlob("shop", "z".repeat(500), "shop/four")).status).toBe(403);
  });

  test("that has refused a namespace is relieved of earlier images by the next cleaning", async () => {
    const { send, putBlob, registry, pass } = await start({ quotaBytes });
    const push = async (number: number) => {
      const text = `${number}`.repeat(25_000);
      const blob = await putBlob("shop", text);
      if (blob.status !== 201) return blob.status;
      const layer = { mediaType: mediaTypes.layer, digest: digestOf(text), size: text.length };
      const body = JSON.stringify({
        schemaVersion: 2,
        mediaType: mediaTypes.manifest,
        config: { ...layer, mediaType: mediaTypes.config },
        layers: [layer],
      });
      const path = `shop/fn/manifests/${`${number}`.repeat(64)}`;
      const answer = await send(loginOf("shop"), "PUT", path, body, mediaTypes.manifest);
      pass(3_600_000);
      return answer.status;
    };
    for (const number of [1, 2, 3]) expect(await push(number)).toBe(201);
    expect(await push(4)).toBe(403);
    await registry.clean({ references: [], functions: ["shop/fn"] });
    expect(await push(4)).toBe(201);
  });

  test("is open to the platform as a whole", async () => {
    const { send } = await start({ quotaBytes });
    const text = "x".repeat(90_000);
    const path = `spry/base/blobs/uploads/?digest=${digestOf(text)}`;
    expect((await send(logins.platform(), "POST", path, text)).status).toBe(201);
  });
});

describe("logins that have ended", () => {
  test.each([
    ["a namespace's", loginOf("shop")],
    [
      "a build's",
      logins.build({
        namespace: "shop",
        uid: "shop-1",
        function: "fn",
        job: { name: "job", uid: "job-1" },
        expiresAt: Date.now() + 3_600_000,
      }),
    ],
  ])("%s: a loop of requests asks the cluster once in a second", async (_, login) => {
    const { send, answers, questions, pass } = await start();
    answers(() => Promise.resolve(false));
    for (let count = 0; count < 20; count++)
      expect((await send(login, "GET", "shop/fn/tags/list")).status).toBe(401);
    expect(questions()).toBe(1);
    pass(1001);
    await send(login, "GET", "shop/fn/tags/list");
    expect(questions()).toBe(2);
  });

  test("many requests at once ask once", async () => {
    const { send, answers, questions } = await start();
    const { promise: answer, resolve: arrive } = Promise.withResolvers<boolean>();
    answers(() => answer);
    const all = Array.from({ length: 20 }, () => send(loginOf("shop"), "GET", "shop/fn/tags/list"));
    await expect.poll(questions).toBe(1);
    arrive(false);
    for (const each of await Promise.all(all)) expect(each.status).toBe(401);
    expect(questions()).toBe(1);
  });
});
