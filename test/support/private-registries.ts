/** Package registries that want a login: npm's by token, Python's by name and password. With them come packages that try to steal it. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo } from "node:net";
import path from "node:path";
import { createLayer } from "@spry/image";
import { hostAddress } from "./host-address.ts";

export interface PrivateRegistry {
  url: string;
  host: string;
  close(): void;
}

async function serve(
  authorization: string,
  answer: (url: string, host: string) => string | Buffer | undefined,
): Promise<PrivateRegistry> {
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    if (request.headers.authorization !== authorization)
      return response
        .writeHead(401, { "www-authenticate": 'Basic realm="packages"' })
        .end('{"error":"who are you?"}');
    const url = decodeURIComponent(request.url ?? "");
    const found = answer(url, request.headers.host ?? "");
    if (found === undefined) return response.writeHead(404).end('{"error":"not found"}');
    if (url.startsWith("/simple/")) response.setHeader("content-type", "text/html");
    return response.end(found);
  };
  const server = createServer(handle);
  await new Promise<void>((resolve) => server.listen(0, hostAddress(), resolve));
  const { address, port } = server.address() as AddressInfo;
  const host = `${address}:${port}`;
  return { url: `http://${host}`, host, close: () => void server.close() };
}

/** A package by name, its version 1.0.0, for npm. */
export async function startPrivateNpm(
  token: string,
  packages: Record<string, { scripts?: Record<string, string>; files: Record<string, string> }>,
): Promise<PrivateRegistry> {
  const tarballs = new Map<string, Buffer>();
  const manifests = new Map<string, Record<string, unknown>>();
  for (const [name, { scripts, files }] of Object.entries(packages)) {
    const manifest = { name, version: "1.0.0", ...(scripts ? { scripts } : {}) };
    const all = { "package.json": JSON.stringify(manifest), ...files };
    const { body } = await createLayer(
      Object.entries(all).map(([file, content]) => ({ path: `package/${file}`, content })),
    );
    tarballs.set(`/${name}.tgz`, Buffer.from(body?.open() as Uint8Array));
    manifests.set(`/${name}`, manifest);
  }
  return serve(`Bearer ${token}`, (url, host) => {
    const tarball = tarballs.get(url);
    const manifest = manifests.get(url);
    if (tarball || !manifest) return tarball;
    const bytes = tarballs.get(`${url}.tgz`) ?? "";
    const integrity = `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
    const dist = { tarball: `http://${host}${url}.tgz`, integrity };
    return JSON.stringify({
      name: manifest["name"],
      "dist-tags": { latest: "1.0.0" },
      versions: { "1.0.0": { ...manifest, dist } },
    });
  });
}

const makeWheel = `
import sys, zipfile
name = sys.argv[1]
files = {
    f"{name}/__init__.py": "word = 'from the private index'\\n",
    f"{name}-1.0.0.dist-info/METADATA": f"Metadata-Version: 2.1\\nName: {name}\\nVersion: 1.0.0\\n",
    f"{name}-1.0.0.dist-info/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    f"{name}-1.0.0.dist-info/RECORD": "",
}
with zipfile.ZipFile(sys.stdout.buffer, "w") as archive:
    for path, text in files.items():
        archive.writestr(path, text)
`;

/** An index of one wheel of version 1.0.0, and of `more` files by their names. */
export function startPrivateIndex(
  user: string,
  password: string,
  name: string,
  more: Readonly<Record<string, Buffer>> = {},
): Promise<PrivateRegistry> {
  const wheel = execFileSync("python3", ["-c", makeWheel, name]);
  const files = new Map(Object.entries({ [`${name}-1.0.0-py3-none-any.whl`]: wheel, ...more }));
  const login = `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
  return serve(login, (url) => {
    const asked = /^\/simple\/([^/]+)\/$/.exec(url)?.[1];
    if (asked === undefined) return files.get(path.posix.basename(url));
    const links = [...files.keys()].filter((file) => file.startsWith(`${asked}-`));
    return links.length > 0
      ? `<!DOCTYPE html>${links.map((file) => `<a href="/files/${file}">${file}</a>`).join("")}`
      : undefined;
  });
}
