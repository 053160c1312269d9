/** An npm registry on this machine for measurements: packages of random bytes, the same in each run. */
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { type AddressInfo } from "node:net";
import { createLayer } from "@spry/image";

export interface PackageRegistry {
  url: string;
  /** A package.json and the lock file that belongs to it. */
  files: { "package.json": string; "package-lock.json": string };
  close(): void;
}

/** So many packages with so many files each, of so many bytes. */
export async function startPackageRegistry(
  count: number,
  filesEach: number,
  bytesEach: number,
): Promise<PackageRegistry> {
  const tarballs = new Map<string, Buffer>();
  for (let index = 0; index < count; index++) {
    const name = `package-${index}`;
    const files = Array.from({ length: filesEach }, (_, file) => ({
      path: `package/lib/file-${file}.js`,
      content: pseudoRandom(`${name}/${file}`, bytesEach),
    }));
    const { body } = await createLayer([
      { path: "package/package.json", content: JSON.stringify({ name, version: "1.0.0" }) },
      ...files,
    ]);
    tarballs.set(name, Buffer.from(body?.open() as Uint8Array));
  }
  const server = createServer((request, response) => {
    const name = /^\/([\w-]+)(\.tgz)?$/.exec(request.url ?? "")?.[1] ?? "";
    const tarball = tarballs.get(name);
    if (!tarball) return response.writeHead(404).end("{}");
    return response.end(tarball);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const dependencies = Object.fromEntries([...tarballs.keys()].map((name) => [name, "1.0.0"]));
  const entries = [...tarballs].map(([name, tarball]) => {
    const integrity = `sha512-${createHash("sha512").update(tarball).digest("base64")}`;
    return [
      `node_modules/${name}`,
      { version: "1.0.0", resolved: `${url}/${name}.tgz`, integrity },
    ];
  });
  const lock = { name: "bench", lockfileVersion: 3, requires: true };
  return {
    url,
    files: {
      "package.json": JSON.stringify({ name: "bench", dependencies }),
      "package-lock.json": JSON.stringify({
        ...lock,
        packages: { "": { name: "bench", dependencies }, ...Object.fromEntries(entries) },
      }),
    },
    close: () => server.close(),
  };
}

/** Bytes that hardly compress, made of a name. */
function pseudoRandom(seed: string, size: number): Buffer {
  return createHash("shake256", { outputLength: size }).update(seed).digest();
}
