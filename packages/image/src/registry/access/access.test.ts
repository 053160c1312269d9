/** What a tenant of the registry may try against another one, and against the platform. */
import { appendFileSync, existsSync } from "node:fs";
import { get, request } from "node:http";
import { join } from "node:path";
import { expect, test } from "vitest";
import { digestOf, mediaTypes } from "../../index.ts";
import { startRegistry } from "../../testing/registry.ts";
import { codeOf, content, digest } from "../../testing/registry-requests.ts";
import { createLogins, type Login } from "./logins.ts";

const logins = createLogins("k".repeat(64));
const job = { name: "hello-build-1", uid: "job-1" };
const expiresAt = Date.now() + 3_600_000;
const shop = logins.namespace({ namespace: "shop", uid: "shop-1" });
const bank = logins.namespace({ namespace: "bank", uid: "bank-1" });
const build = (more: object = {}) =>
  logins.build({ namespace: "shop", uid: "shop-1", function: "hello", job, expiresAt, ...more });

async function start() {
  const cluster = {
    uids: new Map([
      ["shop", "shop-1"],
      ["bank", "bank-1"],
    ]),
    active: new Set([job.uid]),
    isDown: false,
    /** Status that the API server refuses questions with. */
    refuses: undefined as number | undefined,
    /** Answers come when it has resolved. */
    delay: Promise.resolve(),
    asked: 0,
  };
  let now = Date.now();
  const answer = async <T>(value: T) => {
    cluster.asked++;
    await cluster.delay;
    if (cluster.isDown) throw new Error("down");
    if (cluster.refuses) throw Object.assign(new Error("refused"), { code: cluster.refuses });
    return value;
  };
  const { url, registry, dir } = await startRegistry({
    logins,
    clock: { now: () => now, elapsed: () => now },
    tenants: {
      namespaceUid: (name) => answer(cluster.uids.get(name)),
      isJobActive: ({ uid }) => answer(cluster.active.has(uid)),
    },
  });
  const as = ({ username, password }: Login) => {
    const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
    const send = (
      method: string,
      path: string,
      body?: Uint8Array<ArrayBuffer> | string,
      type = "",
    ) =>
      fetch(`${url}/v2/${path}`, {
        method,
        headers: { authorization, ...(type ? { "content-type": type } : {}) },
        ...(body === undefined ? {} : { body }),
      });
    const putBlob = async (repository: string, bytes: Uint8Array = content) =>
      (
        await send(
          "POST",
          `${repository}/blobs/uploads/?digest=${digestOf(bytes)}`,
          new Uint8Array(bytes),
        )
      ).status;
    const manifestOf = (layer: Uint8Array = content) =>
      JSON.stringify({
        schemaVersion: 2,
        mediaType: mediaTypes.manifest,
        config: { mediaType: mediaTypes.config, digest, size: content.length },
        layers: [{ mediaType: mediaTypes.layer, digest: digestOf(layer), size: layer.length }],
      });
    const putImage = async (repository: string, tag: string, layer: Uint8Array = content) => {
      expect(await putBlob(repository)).toBe(201);
      expect(await putBlob(repository, layer)).toBe(201);
      const manifest = manifestOf(layer);
      const path = `${repository}/manifests/${tag}`;
      const answer = await send("PUT", path, manifest, mediaTypes.manifest);
      return { status: answer.status, digest: digestOf(manifest), manifest };
    };
    return { send, putBlob, putImage, manifestOf };
  };
  return { url, dir, registry, as, cluster, pass: (ms: number) => (now += ms) };
}

test("a namespace's login has no way to another namespace's images", async () => {
  const { as } = await start();
  const victim = await as(bank).putImage("bank/vault", "v1");
  expect(victim.status).toBe(201);
  const opened = await as(bank).send("POST", "bank/vault/blobs/uploads/");
  const session = (opened.headers.get("location") ?? "").replace("/v2/", "");
  const { send, manifestOf } = as(shop);
  const manifest = [manifestOf(), mediaTypes.manifest] as const;
  const tries: [method: string, path: string, ...rest: string[]][] = [
    ["GET", "bank/vault/manifests/v1"],
    ["HEAD", "bank/vault/manifests/v1"],
    ["GET", `bank/vault/manifests/${victim.digest}`],
    ["GET", `bank/vault/blobs/${digest}`],
    ["HEAD", `bank/vault/blobs/${digest}`],
    ["GET", "bank/vault/tags/list"],
    ["GET", `bank/vault/referrers/${victim.digest}`],
    ["PUT", "bank/vault/manifests/v1", ...manifest],
    ["PUT", "bank/dependencies.cache/nodejs24/manifests/k", ...manifest],
    ["POST", "bank/vault/blobs/uploads/"],
    ["POST", `bank/vault/blobs/uploads/?mount=${digest}&from=shop/hello`],
    ["GET", session],
    ["PATCH", session, "foreign"],
    ["PUT", `${session}?digest=${digestOf("foreign")}`, "foreign"],
    ["DELETE", session],
    ["DELETE", "bank/vault/manifests/v1"],
    ["DELETE", `bank/vault/manifests/${victim.digest}`],
    ["DELETE", `bank/vault/blobs/${digest}`],
    // What is not there is refused in the same way.
    ["GET", "bank/none/manifests/v1"],
    ["GET", "nobody/none/manifests/v1"],
    ["GET", "bank-vault/manifests/v1"],
    ["PUT", "spry/nodejs24/manifests/latest", ...manifest],
    ["DELETE", "spry/nodejs24/manifests/latest"],
  ];
  for (const [method, path, body, type] of tries) {
    const answer = await send(method, path, body, type);
    const got = method === "HEAD" ? `${answer.status} DENIED` : await codeOf(answer);
    expect(`${method} ${path}: ${got}`).toBe(`${method} ${path}: 403 DENIED`);
  }
  // Its own, too, it deletes nothing of: an image that runs must not go.
  await as(shop).putImage("shop/hello", "v1");
  expect(await codeOf(await send("DELETE", "shop/hello/manifests/v1"))).toBe("403 DENIED");
  expect((await as(bank).send("GET", "bank/vault/manifests/v1")).status).toBe(200);
  expect((await as(bank).send("GET", session)).status).toBe(204);
});

test("an upload is its repository's: with its id alone there is no way to it", async () => {
  const { as } = await start();
  const opened = await as(bank).send("POST", "bank/vault/blobs/uploads/");
  const id = opened.headers.get("location")?.split("/").at(-1);
  for (const method of ["GET", "PATCH", "DELETE"])
    expect(
      await codeOf(
        await as(shop).send(
          method,
          `shop/hello/blobs/uploads/${id}`,
          method === "PATCH" ? "x" : undefined,
        ),
      ),
    ).toBe("404 BLOB_UPLOAD_UNKNOWN");
});

test("uploads that one namespace leaves open do not keep another out", async () => {
  const { as } = await start();
  const open = async (login: Login, repository: string) =>
    (await as(login).send("POST", `${repository}/blobs/uploads/`)).status;
  for (let count = 0; count < 64; count++) expect(await open(shop, `shop/f${count}`)).toBe(202);
  expect(await open(shop, "shop/hello")).toBe(429);
  expect(await open(bank, "bank/vault")).toBe(202);
});

test("another's blob is not mounted, by its name or by nobody's, and not named in a manifest", async () => {
  const { as } = await start();
  const secret = Buffer.from("of the bank");
  expect(await as(bank).putBlob("bank/vault", secret)).toBe(201);
  const { send, manifestOf, putBlob } = as(shop);
  const mount = (from: string) =>
    send("POST", `shop/hello/blobs/uploads/?mount=${digestOf(secret)}${from}`);
  for (const from of ["&from=bank/vault", "", "&from=bank%2Fvault", "&from=shop/../bank/vault"])
    expect((await mount(from)).status).toBe(202);
  expect((await send("HEAD", `shop/hello/blobs/${digestOf(secret)}`)).status).toBe(404);
  await putBlob("shop/hello");
  const named = await send(
    "PUT",
    "shop/hello/manifests/v1",
    manifestOf(secret),
    mediaTypes.manifest,
  );
  expect(await codeOf(named)).toBe("404 MANIFEST_BLOB_UNKNOWN");
  const elsewhere = manifestOf(secret).replace('"layers":[{', '"layers":[{"urls":["https://x"],');
  const path = "shop/hello/manifests/v2";
  expect(await codeOf(await send("PUT", path, elsewhere, mediaTypes.manifest))).toBe(
    "404 MANIFEST_BLOB_UNKNOWN",
  );
});

test("a mount does not look at what its sender may not read", async () => {
  const { as, dir } = await start();
  const secret = Buffer.from("of the bank");
  await as(bank).putBlob("bank/vault", secret);
  const hex = digestOf(secret).slice(7);
  const file = join(dir, "blobs/sha256", hex.slice(0, 2), hex);
  // It would be removed when it was read.
  appendFileSync(file, "damage");
  const path = `shop/hello/blobs/uploads/?mount=${digestOf(secret)}`;
  expect((await as(shop).send("POST", path)).status).toBe(202);
  expect(existsSync(file)).toBe(true);
  const own = `bank/other/blobs/uploads/?mount=${digestOf(secret)}&from=bank/vault`;
  expect((await as(bank).send("POST", own)).status).toBe(202);
  expect(existsSync(file)).toBe(false);
});

test("the catalog names what may be pulled", async () => {
  const { as } = await start();
  await as(bank).putBlob("bank/vault");
  await as(shop).putBlob("shop/hello");
  await as(logins.platform()).putBlob("spry/nodejs24");
  const catalog = async (login: Login) =>
    ((await (await as(login).send("GET", "_catalog")).json()) as { repositories: string[] })
      .repositories;
  expect(await catalog(shop)).toEqual(["shop/hello", "spry/nodejs24"]);
  expect(await catalog(logins.node())).toEqual(["spry/nodejs24"]);
  expect(await catalog(logins.platform())).toEqual(["bank/vault", "shop/hello", "spry/nodejs24"]);
});

test.each([
  "shop%2f..%2fbank%2fvault",
  "shop/%2e%2e/bank/vault",
  "shop/../bank/vault",
  "shop//bank/vault",
  "SHOP/hello",
  "Bank/vault",
  "shop/hello/../../bank/vault",
  "./bank/vault",
  "bank/vault%00",
  `${"a".repeat(300)}/b`,
  `bank/${"v".repeat(200)}`,
])("the name %s leads nowhere", async (name) => {
  const { as, url } = await start();
  await as(bank).putImage("bank/vault", "v1");
  const { hostname, port } = new URL(url);
  const path = `/v2/${name}/manifests/v1`;
  const auth = `${shop.username}:${shop.password}`;
  // Not by fetch, which would put the path right.
  const status = await new Promise<number | undefined>((resolve) =>
    get({ hostname, port, path, auth }, (answer) => resolve(answer.resume().statusCode)),
  );
  expect([400, 403, 404]).toContain(status);
});

test("metrics are the platform's", async () => {
  const { as } = await start();
  const metrics = (login: Login) => as(login).send("GET", "../metrics");
  expect((await metrics(shop)).status).toBe(403);
  expect((await metrics(build())).status).toBe(403);
  expect((await metrics(logins.platform())).status).toBe(200);
});

test("a build's login is good for its Function and the namespace's cache, while its Job goes on", async () => {
  const { as, cluster, pass } = await start();
  await as(shop).putImage("shop/other", "v1");
  const { send, putImage, putBlob } = as(build());
  expect((await putImage("shop/hello", "key")).status).toBe(201);
  for (const [method, path] of [
    ["GET", "shop/other/manifests/v1"],
    ["POST", "shop/other/blobs/uploads/"],
    ["DELETE", "shop/hello/manifests/key"],
    ["POST", "bank/hello/blobs/uploads/"],
  ] as const)
    expect(await codeOf(await send(method, path))).toBe("403 DENIED");
  cluster.active.clear();
  pass(1001);
  expect(await codeOf(await send("GET", "shop/hello/manifests/key"))).toBe("401 UNAUTHORIZED");
  cluster.active.add(job.uid);
  pass(1001);
  expect(await putBlob("shop/hello")).toBe(201);
  // Whatever is said of its Job: there is a time limit.
  const late = as(build({ expiresAt: Date.now() - 1 }));
  expect(await codeOf(await late.send("GET", "shop/hello/manifests/key"))).toBe("401 UNAUTHORIZED");
});

test("what builds share is written once", async () => {
  const { as } = await start();
  const cache = "shop/dependencies.cache/nodejs24";
  const { putImage } = as(build());
  expect((await putImage(cache, "k")).status).toBe(201);
  expect((await putImage(cache, "k")).status).toBe(201);
  const poison = Buffer.from("something else");
  const other = build({ function: "other", job: { ...job } });
  expect((await as(other).putImage(cache, "k", poison)).status).toBe(409);
  const { digest: wrong, manifest } = await as(other).putImage(cache, "other", poison);
  const path = `${cache}/manifests/${wrong}?tag=k`;
  expect((await as(other).send("PUT", path, manifest, mediaTypes.manifest)).status).toBe(409);
  // Those who may read the namespace's Secrets read it.
  expect((await as(shop).send("GET", `${cache}/manifests/k`)).status).toBe(200);
  expect(await codeOf(await as(shop).send("POST", `${cache}/blobs/uploads/`))).toBe("403 DENIED");
});

test("a namespace that was made again has another login, and nothing of what was there", async () => {
  const { as, cluster, pass } = await start();
  await as(shop).putImage("shop/hello", "v1");
  await as(bank).putImage("bank/vault", "v1");
  cluster.uids.delete("shop");
  pass(1001);
  expect(await codeOf(await as(shop).send("GET", "shop/hello/manifests/v1"))).toBe(
    "401 UNAUTHORIZED",
  );
  cluster.uids.set("shop", "shop-2");
  const next = logins.namespace({ namespace: "shop", uid: "shop-2" });
  expect(await codeOf(await as(next).send("GET", "shop/hello/manifests/v1"))).toBe(
    "404 MANIFEST_UNKNOWN",
  );
  expect(await codeOf(await as(shop).send("GET", "shop/hello/manifests/v1"))).toBe(
    "401 UNAUTHORIZED",
  );
  expect((await as(bank).send("GET", "bank/vault/manifests/v1")).status).toBe(200);
});

test("while the cluster cannot be asked, those who were there last get their images, and no others", async () => {
  const { as, cluster, pass } = await start();
  await as(shop).putImage("shop/hello", "v1");
  cluster.isDown = true;
  pass(1001);
  expect((await as(shop).send("GET", "shop/hello/manifests/v1")).status).toBe(200);
  const other = logins.namespace({ namespace: "shop", uid: "shop-0" });
  expect(await codeOf(await as(other).send("GET", "shop/hello/manifests/v1"))).toBe(
    "401 UNAUTHORIZED",
  );
});

test.each([401, 403])(
  "an API server that refuses with %i lets nobody in on what it said before",
  async (status) => {
    const { as, cluster, pass } = await start();
    await as(build()).putImage("shop/hello", "v1");
    pass(1001);
    cluster.refuses = status;
    for (const login of [shop, build()]) {
      const answer = await as(login).send("GET", "shop/hello/manifests/v1");
      expect(await codeOf(answer)).toBe("401 UNAUTHORIZED");
    }
    for (const passing of [429, 503]) {
      cluster.refuses = passing;
      expect((await as(shop).send("GET", "shop/hello/manifests/v1")).status).toBe(200);
      pass(1001);
    }
  },
);

const next = logins.namespace({ namespace: "shop", uid: "shop-2" });

test("a yes from before does not give the former namespace its repositories back", async () => {
  const { as, cluster, pass } = await start();
  await as(shop).putImage("shop/hello", "v1");
  cluster.uids.set("shop", "shop-2");
  expect((await as(next).putImage("shop/hello", "v2")).status).toBe(201);
  // Within the time for which the registry remembers.
  const late = await as(shop).send("GET", "shop/hello/manifests/v2");
  expect(await codeOf(late)).toBe("401 UNAUTHORIZED");
  expect((await as(next).send("GET", "shop/hello/manifests/v2")).status).toBe(200);

  // The answer was right when it was given, and is late.
  cluster.uids.set("shop", "shop-1");
  pass(1001);
  let arrive = () => {};
  cluster.delay = new Promise((resolve) => (arrive = resolve));
  const before = cluster.asked;
  const slow = as(shop).send("GET", "shop/hello/manifests/v2");
  await expect.poll(() => cluster.asked).toBe(before + 1);
  cluster.delay = Promise.resolve();
  cluster.uids.set("shop", "shop-3");
  const third = logins.namespace({ namespace: "shop", uid: "shop-3" });
  expect((await as(third).putImage("shop/hello", "v3")).status).toBe(201);
  arrive();
  expect(await codeOf(await slow)).toBe("401 UNAUTHORIZED");
  expect((await as(third).send("GET", "shop/hello/manifests/v3")).status).toBe(200);
});

test.each(["manifests/late", `blobs/uploads/?digest=${digest}`])(
  "a login that ends while it sends %s stores nothing",
  async (path) => {
    const { as, url, cluster, pass } = await start();
    await as(shop).putBlob("shop/hello");
    pass(1001);
    const before = cluster.asked;
    const isManifest = path.startsWith("manifests");
    const body = isManifest ? as(shop).manifestOf() : content.toString();
    const sending = request(`${url}/v2/shop/hello/${path}`, {
      method: isManifest ? "PUT" : "POST",
      auth: `${shop.username}:${shop.password}`,
      headers: { "content-type": mediaTypes.manifest },
    });
    const status = new Promise<number | undefined>((resolve, reject) => {
      sending.on("response", (answer) => resolve(answer.resume().statusCode));
      sending.on("error", reject);
    });
    sending.write(body.slice(0, 5));
    await expect.poll(() => cluster.asked).toBe(before + 1);
    cluster.uids.set("shop", "shop-2");
    // What the other one refers to is there again.
    const other = isManifest ? "shop/hello" : "shop/other";
    expect(await as(next).putBlob(other)).toBe(201);
    sending.end(body.slice(5));
    expect(await status).toBe(401);
    const left = isManifest ? "manifests/late" : `blobs/${digest}`;
    expect((await as(next).send("GET", `shop/hello/${left}`)).status).toBe(404);
  },
);
