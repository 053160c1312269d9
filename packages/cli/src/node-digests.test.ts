/** The packaged command runs no Node.js but the one that it was made with. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";

const root = path.resolve(import.meta.dirname, "../../..");
const { fetchedNode, nodeDigests } = (await import(
  path.join(root, "packages/cli/bin/node.mjs")
)) as { fetchedNode: string; nodeDigests: Record<string, string> };
const lock = JSON.parse(readFileSync(path.join(root, "package-lock.json"), "utf8")) as {
  packages: Record<string, { version: string; integrity?: string }>;
};

test("the digests are those of package-lock.json", () => {
  const locked = Object.entries(lock.packages).filter(([name]) =>
    name.startsWith("node_modules/node-linux-"),
  );
  expect(locked.length).toBeGreaterThan(0);
  for (const [name, { version, integrity }] of locked) {
    expect(version).toBe(fetchedNode);
    expect(nodeDigests[name.replace("node_modules/", "")]).toBe(integrity);
  }
});

test("a package with another digest is not run, and leaves nothing", async () => {
  const dir = mkdtempSync(path.join(tmpdir(), "package-"));
  const bin = path.join(dir, "packages/cli/bin");
  mkdirSync(path.join(dir, "dist"), { recursive: true });
  mkdirSync(path.join(dir, "fake"));
  writeFileSync(path.join(dir, "dist/main.js"), "");
  writeFileSync(path.join(dir, "package.json"), '{"type":"module"}');
  cpSync(path.join(root, "packages/cli/bin/node.mjs"), path.join(bin, "node.mjs"));
  // As a registry that sends something else; the running Node.js passes for an old one.
  const npm = path.join(dir, "fake/npm");
  writeFileSync(
    npm,
    `#!/bin/sh\necho "$@" >> "$NPM_CALLS"\n[ "$1" = pack ] && echo other > node.tgz\nexit 0\n`,
  );
  chmodSync(npm, 0o755);
  const program = `
    Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.0.0" } });
    const { node24 } = await import(${JSON.stringify(path.join(bin, "node.mjs"))});
    console.log(node24());`;
  const cache = path.join(dir, "cache");
  const env = {
    PATH: `${path.dirname(npm)}:/usr/bin:/bin`,
    XDG_CACHE_HOME: cache,
    NPM_CALLS: path.join(dir, "calls"),
  };
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], { env });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (said += text));
  const [code] = (await once(child, "close")) as [number];
  expect(said).toContain("its digest is another one, and it is not run");
  expect(code).toBe(1);
  expect(readFileSync(env.NPM_CALLS, "utf8")).toMatch(/^pack [^\n]*\n$/);
  expect(
    existsSync(path.join(cache, "spry", `node-${process.platform}-${process.arch}-${fetchedNode}`)),
  ).toBe(false);
});
