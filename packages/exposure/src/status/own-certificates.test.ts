/** Which of the platform's own certificates are kept, and which are issued again. */
import { certificateFor } from "@spry/test-kit";
import { X509Certificate } from "node:crypto";
import { beforeEach, expect, test } from "vitest";
import { certificatesOfOwn, type HostAuthority } from "./own-certificates.ts";

let issued: string[][] = [];
let days = 365;
let signer: string | undefined;
/** Certificates that sign themselves: who has signed is compared with `signer` only. */
const authority: HostAuthority = {
  certificate: () => signer,
  async issue(hosts) {
    issued.push([...hosts]);
    return certificateFor(hosts, days);
  },
};
beforeEach(() => {
  issued = [];
  days = 365;
  signer = undefined;
});

const failures: unknown[] = [];
const of = (hosts: string[], present: Record<string, string> = {}, now = Date.now()) =>
  certificatesOfOwn(hosts, authority, present, now, (error) => failures.push(error));
const namesIn = (data: Record<string, string>) =>
  Object.entries(data)
    .filter(([name]) => name.endsWith(".crt"))
    .flatMap(([, crt]) =>
      (new X509Certificate(Buffer.from(crt, "base64")).subjectAltName ?? "").split(", "),
    )
    .sort();

test("every host is in one certificate, and 16 are enough for many", async () => {
  const hosts = Array.from({ length: 60 }, (_, n) => `h${n}.localhost`);
  const { data } = await of(hosts);
  expect(Object.keys(data).length).toBeLessThanOrEqual(32);
  expect(namesIn(data)).toEqual(hosts.map((host) => `DNS:${host}`).sort());
});

test("what is there, fits and lasts is kept", async () => {
  const { data, changesAt } = await of(["a.localhost", "b.localhost"]);
  issued = [];
  expect((await of(["b.localhost", "a.localhost"], data)).data).toEqual(data);
  expect(issued).toEqual([]);
  const inDays = Math.round((changesAt - Date.now()) / 86_400_000);
  expect(inDays).toBe(335);
});

test("a new host makes one certificate new, a host that is gone is in none", async () => {
  const hosts = Array.from({ length: 20 }, (_, n) => `h${n}.localhost`);
  const { data } = await of(hosts);
  issued = [];
  const more = await of([...hosts, "new.localhost"], data);
  expect(issued).toHaveLength(1);
  expect(namesIn(more.data)).toContain("DNS:new.localhost");
  expect(namesIn((await of(hosts, more.data)).data)).not.toContain("DNS:new.localhost");
});

test("one that ends within 30 days is renewed", async () => {
  const { data } = await of(["a.localhost"]);
  issued = [];
  const later = Date.now() + 336 * 86_400_000;
  await of(["a.localhost"], data, later);
  expect(issued).toEqual([["a.localhost"]]);
});

test("one of another authority, without its key or unreadable, is replaced", async () => {
  const { data } = await of(["a.localhost"]);
  const [crt = "", key = ""] = Object.keys(data).sort();
  const broken = [
    { [crt]: data[crt] ?? "" },
    { [crt]: "AAAA", [key]: data[key] ?? "" },
    { [crt]: "", [key]: "" },
  ];
  issued = [];
  for (const present of broken) await of(["a.localhost"], present);
  expect(issued).toHaveLength(3);
  signer = (await certificateFor("another authority")).crt;
  await of(["a.localhost"], data);
  expect(issued).toHaveLength(4);
});

test("while none can be issued, the old ones stay, and it is tried again soon", async () => {
  const { data } = await of(["a.localhost"]);
  const later = Date.now() + 340 * 86_400_000;
  const failing: HostAuthority = {
    ...authority,
    issue: () => Promise.reject(new Error("no space left")),
  };
  const kept = await certificatesOfOwn(["a.localhost"], failing, data, later, (error) =>
    failures.push(error),
  );
  expect(kept.data).toEqual(data);
  expect(kept.changesAt - later).toBe(10_000);
  expect(failures.at(-1)).toEqual(new Error("no space left"));
});
