import { X509Certificate } from "node:crypto";
import { createApiServer } from "@spry/apiserver";
import { KubeClient, ManualClock, resources, silentLogger } from "@spry/kube";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ensureWebhookCertificate, webhookSecretName } from "./webhook-certificate.ts";

const namespace = "kyma-system";
const day = 24 * 3600 * 1000;
const start = Date.parse("2030-01-01T00:00:00Z");

let api: Awaited<ReturnType<typeof createApiServer>>;
let client: KubeClient;
beforeEach(async () => {
  api = await createApiServer({ dataDir: ":memory:" });
  client = new KubeClient(api.transport(), { fieldManager: "test" });
  await client.apply(resources.namespaces, { metadata: { name: namespace } });
});
afterEach(() => api.close());

const ensure = (days: number) => {
  const clock = new ManualClock(start + days * day);
  return ensureWebhookCertificate({ client, namespace, log: silentLogger, clock });
};
const authoritiesIn = (pem: string) =>
  (pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []).map(
    (text) => new X509Certificate(text),
  );

test("it is for the Service, signed by the authority, and kept", async () => {
  const { cert, ca, key } = await ensure(0);
  const leaf = new X509Certificate(cert);
  expect(leaf.subjectAltName).toContain("DNS:serverless-webhook.kyma-system.svc");
  expect(authoritiesIn(ca).map((each) => leaf.verify(each.publicKey))).toEqual([true]);
  expect(key).toMatch(/^-----BEGIN PRIVATE KEY-----/);
  expect(await ensure(59)).toEqual({ cert, ca, key });
});

test("a month before its end it is renewed by the same authority", async () => {
  const first = await ensure(0);
  const second = await ensure(61);
  expect(second.cert).not.toBe(first.cert);
  expect(second.ca).toBe(first.ca);
  const [authority] = authoritiesIn(second.ca);
  expect(new X509Certificate(second.cert).verify(authority!.publicKey)).toBe(true);
});

test("a year before the authority's end there is another, and both are trusted", async () => {
  const first = await ensure(0);
  const second = await ensure(3650 - 300);
  const [newer, older] = authoritiesIn(second.ca);
  expect(new X509Certificate(second.cert).verify(newer!.publicKey)).toBe(true);
  expect(new X509Certificate(first.cert).verify(older!.publicKey)).toBe(true);
  // It stays the authority from then on.
  expect((await ensure(3650 - 200)).ca).toBe(second.ca);
});

test("in place of a Secret that is gone comes another authority, announced before it signs for anybody", async () => {
  const first = await ensure(0);
  const target = { namespace, name: webhookSecretName };
  await client.delete(resources.secrets, target);
  const heard: string[] = [];
  const announce = async (authorities: string) => {
    heard.push(authorities);
    await expect(client.get(resources.secrets, target)).rejects.toThrow(/not found/);
  };
  const clock = new ManualClock(start);
  const options = { client, namespace, log: silentLogger, clock, trusted: first.ca, announce };
  const second = await ensureWebhookCertificate(options);
  expect(heard).toEqual([second.ca]);
  const [newer, older] = authoritiesIn(second.ca);
  expect(new X509Certificate(second.cert).verify(newer!.publicKey)).toBe(true);
  expect(new X509Certificate(first.cert).verify(older!.publicKey)).toBe(true);
});

test("two that begin at once end up with the same", async () => {
  const [one, other] = await Promise.all([ensure(0), ensure(0)]);
  expect(one).toEqual(other);
});

test("what somebody has damaged is issued anew", async () => {
  await ensure(0);
  const data = { "tls.crt": Buffer.from("no certificate").toString("base64") };
  await client.patch(resources.secrets, { namespace, name: webhookSecretName }, { data });
  expect((await ensure(0)).cert).toMatch(/^-----BEGIN CERTIFICATE-----/);
});
