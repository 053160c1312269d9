/** A package registry for npm on this machine, of packages that the test writes. */
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo } from "node:net";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { createLayer } from "../index.ts";
import { temporaryDirectory } from "./registry.ts";

export interface NpmPackage {
  /** Fields of its package.json besides name and version. */
  manifest?: Record<string, unknown>;
  files: Record<string, string | Buffer>;
}

const greeting: NpmPackage = {
  manifest: { bin: "cli.js" },
  files: { "index.js": "module.exports = 'hello';", "cli.js": "#!/usr/bin/env node\n" },
};

/** Serves packages by `name@version`, to all or to who has the token; `npmConfig` is an `.npmrc` for it. */
export async function startNpmRegistry(
  options: { packages?: Record<string, NpmPackage>; token?: string } = {},
) {
  const { packages = { "greeting@1.2.3": greeting }, token } = options;
  const versions = new Map<string, Record<string, unknown>>();
  const tarballs = new Map<string, Buffer>();
  for (const [id, { manifest = {}, files }] of Object.entries(packages)) {
    const [, name = "", version = ""] = /^(.+)@(.+)$/.exec(id) ?? [];
    const full = { name, version, ...manifest };
    const entries = Object.entries({ "package.json": JSON.stringify(full), ...files });
    const { body } = await createLayer(
      entries.map(([path, content]) => ({ path: `package/${path}`, content, mode: 0o755 })),
    );
    const tarball = Buffer.from(body?.open() as Uint8Array);
    const file = `/-/${name.replace("/", "-")}-${version}.tgz`;
    tarballs.set(file, tarball);
    const integrity = `sha512-${createHash("sha512").update(tarball).digest("base64")}`;
    const known = versions.get(name) ?? {};
    versions.set(name, { ...known, [version]: { ...full, dist: { tarball: file, integrity } } });
  }
  const requested: string[] = [];
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? "/");
    requested.push(path);
    if (token !== undefined && request.headers.authorization !== `Bearer ${token}`)
      return response.writeHead(401).end('{"error":"who are you?"}');
    const tarball = tarballs.get(path);
    if (tarball) return response.end(tarball);
    const found = versions.get(path.slice(1));
    if (!found) return response.writeHead(404).end('{"error":"not found"}');
    const text = JSON.stringify({
      name: path.slice(1),
      "dist-tags": { latest: Object.keys(found).at(-1) },
      versions: found,
    });
    return response.end(text.replaceAll('"/-/', `"http://${request.headers.host}/-/`));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const npmConfig = join(temporaryDirectory(), ".npmrc");
  const login = token === undefined ? "" : `//${address}/:_authToken=${token}\n`;
  writeFileSync(
    npmConfig,
    `registry=http://${address}/\n//127.0.0.1/:_authToken=secret-token\n${login}`,
  );
  return { address, npmConfig, requested, requests: () => requested.length };
}
