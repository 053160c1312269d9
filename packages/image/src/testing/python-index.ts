/** A Python package index on this machine, of one package. */
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo } from "node:net";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { temporaryDirectory } from "./registry.ts";

/** `3.12`, say; undefined where pip is missing, or is not of the Python that is `python3`. */
export function pythonOnThisMachine(): string | undefined {
  const { stdout } = spawnSync("pip", ["--version"], { encoding: "utf8" });
  const ofPip = /\(python (3\.\d+)\)/.exec(stdout ?? "")?.[1];
  const { stdout: python } = spawnSync("python3", ["--version"], { encoding: "utf8" });
  return ofPip !== undefined && python?.includes(` ${ofPip}.`) ? ofPip : undefined;
}

export const wheelName = "greeting-1.2.3-py3-none-any.whl";
const wheelProgram = `
import base64, hashlib, sys, zipfile
files = {
    "greeting/__init__.py": "def greet():\\n    return 'hello'\\n",
    "greeting/template.py": "{% not python %}\\n",
    "greeting-1.2.3.dist-info/METADATA": "Metadata-Version: 2.1\\nName: greeting\\nVersion: 1.2.3\\n",
    "greeting-1.2.3.dist-info/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    "greeting-1.2.3.dist-info/entry_points.txt": "[console_scripts]\\ngreet = greeting:greet\\n",
}
digest = lambda text: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
record = "greeting-1.2.3.dist-info/RECORD"
files[record] = "".join(f"{name},sha256={digest(text)},{len(text)}\\n" for name, text in files.items()) + record + ",,\\n"
with zipfile.ZipFile(sys.argv[1], "w") as archive:
    for name, text in files.items():
        archive.writestr(name, text)
`;

/**
 * A package index on this machine, for all or for who logs in, and the `pip.conf` that names it. It has the wheel
 * above, and `sources` by their names in version 1.0.
 */
export async function startPythonIndex(
  options: { login?: string; sources?: Readonly<Record<string, Buffer>> } = {},
) {
  const file = join(temporaryDirectory(), wheelName);
  execFileSync("python3", ["-c", wheelProgram, file]);
  let requests = 0;
  const server = createServer((request, response) => {
    requests++;
    const { login } = options;
    const expected = login && `Basic ${Buffer.from(login).toString("base64")}`;
    if (expected && request.headers.authorization !== expected)
      return response.writeHead(401, { "www-authenticate": "Basic" }).end();
    if (request.url?.endsWith(".whl")) return response.end(readFileSync(file));
    const [, name = "", isFile] =
      /^\/(?:simple\/)?(\w+)(-1\.0\.tar\.gz)?/.exec(request.url ?? "") ?? [];
    const source = options.sources?.[name];
    if (source && isFile) return response.end(source);
    if (source) {
      response.setHeader("content-type", "text/html");
      return response.end(`<!DOCTYPE html><a href="/${name}-1.0.tar.gz">${name}-1.0.tar.gz</a>`);
    }
    if (request.url !== "/simple/greeting/") return response.writeHead(404).end();
    response.setHeader("content-type", "text/html");
    return response.end(`<!DOCTYPE html><a href="/${wheelName}">${wheelName}</a>`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const pipConfig = join(temporaryDirectory(), "pip.conf");
  const settings = [`index-url = http://user:secret-token@${address}/simple`, "find-links ="];
  writeFileSync(pipConfig, ["[global]", ...settings, ""].join("\n"));
  return { address, pipConfig, requests: () => requests };
}
