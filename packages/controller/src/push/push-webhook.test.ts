/** Pushes of Git servers, as those send them, to Functions on the real API server. */
import { createHmac } from "node:crypto";
import { createApiServer } from "@spry/apiserver";
import { annotations, functionCrd, functions } from "@spry/function";
import { KubeClient, ManualClock, resources } from "@spry/kube";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createPushWebhook, pushSecretName } from "./push-webhook.ts";

const namespace = "shop";
const secret = "a shared secret";
const sign = (body: string, key = secret) =>
  `sha256=${createHmac("sha256", key).update(body).digest("hex")}`;

let client: KubeClient;
let close: () => Promise<void>;
let clock: ManualClock;
let webhook: ReturnType<typeof createPushWebhook>;

beforeAll(async () => {
  const api = await createApiServer({ dataDir: ":memory:" });
  client = new KubeClient(api.transport());
  close = () => api.close();
  await client.apply(resources.customResourceDefinitions, functionCrd());
  for (const name of [namespace, "other"]) {
    await client.apply(resources.namespaces, { metadata: { name } });
    await client.create(resources.secrets, {
      metadata: { name: pushSecretName, namespace: name },
      data: {
        secret: Buffer.from(`${name === "other" ? "another" : secret}\n`).toString("base64"),
      },
    });
  }
});
afterAll(() => close());

const sources: Record<string, [url: string, reference: string]> = {
  https: ["https://git.example/team/shop.git", "main"],
  ssh: ["git@git.example:team/shop.git", "main"],
  slashes: ["https://git.example/team/shop", "feature/x"],
  tag: ["ssh://git@git.example:2222/team/shop", "v1"],
  elsewhere: ["https://git.example/team/shop2.git", "main"],
};

beforeEach(async () => {
  clock = new ManualClock(Date.parse("2026-01-02T03:04:05Z"));
  webhook = createPushWebhook({ client, clock });
  await client
    .list(functions)
    .then(({ items }) =>
      Promise.all(
        items.map(({ metadata: { name = "", namespace: of = "" } }) =>
          client.delete(functions, { name, namespace: of }),
        ),
      ),
    );
  for (const of of [namespace, "other"])
    for (const [name, [url, reference]] of Object.entries(sources))
      await client.create(functions, {
        metadata: { name, namespace: of },
        spec: {
          runtime: "nodejs24",
          source: { gitRepository: { url, reference, baseDir: "/" } },
        },
      });
});

function push(body: string, headers: Record<string, string>, at = `/git/${namespace}`) {
  const url = `http://webhook${at}`;
  return webhook.fetch(new Request(url, { method: "POST", body, headers }));
}

/** Of all namespaces: who has been told. */
async function told(): Promise<string[]> {
  const { items } = await client.list(functions);
  return items
    .filter(({ metadata }) => metadata.annotations?.[annotations.gitCheck])
    .map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
}

const github = JSON.stringify({
  ref: "refs/heads/main",
  repository: {
    clone_url: "https://git.example/team/shop.git",
    ssh_url: "git@git.example:team/shop.git",
    html_url: "https://git.example/team/shop",
  },
});
const gitlab = JSON.stringify({
  ref: "refs/heads/feature/x",
  project: {
    git_http_url: "https://git.example/team/shop.git",
    git_ssh_url: "git@git.example:team/shop.git",
  },
});
const plain = JSON.stringify({ repository: "https://git.example/team/shop", ref: "refs/tags/v1" });

describe("a push", () => {
  test.each([
    {
      from: "GitHub",
      body: github,
      headers: { "x-hub-signature-256": sign(github) },
      who: ["https", "ssh"],
    },
    { from: "GitLab", body: gitlab, headers: { "x-gitlab-token": secret }, who: ["slashes"] },
    { from: "a script", body: plain, headers: { "x-signature-256": sign(plain) }, who: ["tag"] },
    {
      from: "GitHub, as a form",
      body: `payload=${encodeURIComponent(github)}`,
      headers: {
        "content-type": "application/x-www-form-urlencoded",
        "x-hub-signature-256": sign(`payload=${encodeURIComponent(github)}`),
      },
      who: ["https", "ssh"],
    },
  ])("of $from has its Functions look at once", async ({ body, headers, who }) => {
    const answer = await push(body, headers);
    expect([answer.status, await answer.json()]).toEqual([200, { functions: who }]);
    expect(await told()).toEqual(who.map((name) => `${namespace}/${name}`));
  });

  const refused: { why: string; headers: Record<string, string>; at?: string; status: number }[] = [
    { why: "without a signature", headers: {}, status: 401 },
    {
      why: "with another's signature",
      headers: { "x-hub-signature-256": sign(github, "x") },
      status: 401,
    },
    { why: "with another's token", headers: { "x-gitlab-token": "x" }, status: 401 },
    { why: "with an empty token", headers: { "x-gitlab-token": "" }, status: 401 },
    {
      why: "to a namespace with another secret",
      headers: { "x-gitlab-token": secret },
      at: "/git/other",
      status: 401,
    },
    {
      why: "to a namespace without a secret",
      headers: { "x-gitlab-token": "" },
      at: "/git/default",
      status: 401,
    },
    { why: "to nowhere", headers: { "x-gitlab-token": secret }, at: "/git/../x", status: 404 },
    {
      why: "that says it is too large",
      headers: { "x-gitlab-token": secret, "content-length": "99999999" },
      status: 413,
    },
  ];
  test.each(refused)("$why is refused with $status", async ({ headers, at, status }) => {
    const answer = await push(github, headers, at);
    expect(answer.status).toBe(status);
    expect(JSON.stringify(await answer.json())).not.toContain(secret);
    expect(await told()).toEqual([]);
  });

  test("that is too large is refused, whatever it says of its size", async () => {
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(1024 * 1024)),
    });
    const init = { method: "POST", body, duplex: "half" } as RequestInit;
    const answer = await webhook.fetch(new Request(`http://webhook/git/${namespace}`, init));
    expect(answer.status).toBe(413);
  });

  test("of another kind is answered, and wakes no Function", async () => {
    for (const body of [
      '{"zen":"Keep it logically awesome."}',
      "no JSON",
      "[]",
      '{"repository":7}',
    ]) {
      const answer = await push(body, { "x-hub-signature-256": sign(body) });
      expect(answer.status).toBe(200);
    }
    expect(await told()).toEqual([]);
  });

  test("after many others has to wait, in its own namespace", async () => {
    const headers = { "x-gitlab-token": "wrong" };
    const statuses: number[] = [];
    for (let i = 0; i < 31; i++) statuses.push((await push(github, headers)).status);
    expect(new Set(statuses.slice(0, 30))).toEqual(new Set([401]));
    expect(statuses[30]).toBe(429);
    expect((await push(github, { "x-gitlab-token": "another" }, "/git/other")).status).toBe(200);
    await clock.advance(1000);
    expect((await push(github, { "x-gitlab-token": secret })).status).toBe(200);
  });
});
