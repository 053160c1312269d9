import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { resources } from "@spry/kube";
import { describe, expect, test } from "vitest";
import { eventually, startMachine, temporaryDirectory } from "../../testing.ts";
import { userOf } from "./container-user.ts";
import { openOciSandbox } from "./oci-sandbox.ts";
import { why } from "./testing.ts";

const accounts = "root:x:0:0:root:/:/bin/sh\nweb:x:33:34:web:/:/bin/false\n";

/** Layers of an image, topmost first: path → content, or `→ target` of a link. */
function layersOf(...layers: Record<string, string>[]): string[] {
  return layers.map((files) => {
    const dir = temporaryDirectory();
    for (const [name, text] of Object.entries(files)) {
      const file = path.join(dir, name);
      mkdirSync(path.dirname(file), { recursive: true });
      if (text.startsWith("→ ")) symlinkSync(text.slice(2), file);
      else writeFileSync(file, text);
    }
    return dir;
  });
}

describe("the user of an image is found", () => {
  test.each([
    { name: "by its name", layers: [{ "etc/passwd": accounts }], uid: 33 },
    {
      name: "behind a link within the image",
      layers: [{ "etc/passwd": "→ ../usr/etc/passwd", "usr/etc/passwd": accounts }],
      uid: 33,
    },
    {
      name: "behind an absolute link, which is one within the image",
      layers: [{ "etc/passwd": "→ /usr/etc/passwd", "usr/etc/passwd": accounts }],
      uid: 33,
    },
    {
      name: "behind a link that stops at the root directory of the image",
      layers: [{ "etc/passwd": "→ ../../../../usr/etc/passwd", "usr/etc/passwd": accounts }],
      uid: 33,
    },
    { name: "in a lower layer", layers: [{ "app/x": "" }, { "etc/passwd": accounts }], uid: 33 },
    {
      name: "behind a link into a lower layer",
      layers: [{ "etc/passwd": "→ ../lib/passwd" }, { "lib/passwd": accounts }],
      uid: 33,
    },
  ])("$name", ({ layers, uid }) => {
    const own = layers as Record<string, string>[];
    expect(userOf("web", undefined, layersOf(...own))).toMatchObject({ uid, gid: 34 });
  });
});

describe("a file of accounts is refused", () => {
  test.each([
    { name: "that is a link to a file of this machine", link: "/etc/shadow" },
    { name: "that is a link to a device", link: "/dev/zero" },
    { name: "that is a link out of the image", link: import.meta.filename },
    { name: "behind links without end", link: "passwd", says: "too many links" },
  ])("$name", ({ link, says = "a link to a file that the image does not have" }) => {
    const layers = layersOf({ "etc/passwd": `→ ${link}` }, { "etc/group": "" });
    expect(() => userOf("web", undefined, layers)).toThrow(`/etc/passwd of the image`);
    expect(() => userOf("web", undefined, layers)).toThrow(says);
  });

  test("that is a FIFO, which is not waited for", () => {
    const layers = layersOf({ "etc/x": "" });
    execFileSync("mkfifo", [path.join(layers[0] ?? "", "etc/passwd")]);
    expect(() => userOf("web", undefined, layers)).toThrow(
      "/etc/passwd of the image is a FIFO, not a regular file",
    );
  });

  test.each(["etc/passwd", "etc/group"])("that is larger than 1 MiB: %s", (file) => {
    const layers = layersOf({ [file]: "\n".repeat(1024 * 1024 + 1) });
    expect(() => userOf(file === "etc/group" ? "0:web" : "web", undefined, layers)).toThrow(
      `/${file} of the image has 1048577 bytes: the limit for a file that the node reads is 1048576 bytes (1 MiB)`,
    );
  });
});

test("files of accounts are not read where the Pod says user and group", () => {
  const layers = layersOf({ "etc/passwd": "\n".repeat(2 * 1024 * 1024) });
  const isolation = { user: 1000, group: 1000, supplementalGroups: [5, 5] };
  expect(userOf("web", isolation as never, layers)).toEqual({
    uid: 1000,
    gid: 1000,
    additionalGids: [5],
  });
});

test.skipIf(why !== "")(
  `a Pod whose image has 60 MB of accounts waits with the limit as the reason, and its memory is not the node's${why}`,
  async () => {
    const openSandbox = (dataDir: string) => openOciSandbox({ dataDir });
    const { client, registry } = await startMachine({ openSandbox });
    const image = await registry.push("hostile", { "etc/passwd": "\n".repeat(60_000_000) });
    const before = process.memoryUsage().rss;
    const metadata = { namespace: "default", name: "hostile" };
    await client.create(resources.pods, {
      metadata,
      spec: { nodeName: "here", containers: [{ name: "main", image, command: ["true"] }] },
    });
    const waiting = await eventually(async () => {
      const { status } = await client.get(resources.pods, metadata);
      const state = status?.containerStatuses?.[0]?.state?.waiting;
      expect(state?.reason).toBe("CreateContainerError");
      return state;
    }, 30_000);
    expect(waiting?.message).toContain("/etc/passwd of the image has 60000000 bytes: the limit");
    expect(process.memoryUsage().rss - before).toBeLessThan(400 * 1024 * 1024);
  },
  60_000,
);
