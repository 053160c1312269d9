/**
 * A build of nothing, before the first real one: code is compiled, and parts of Node.js are loaded, when they are first used. The
 * registry that it needs is in memory.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo } from "node:net";
import { assembleImage } from "../assemble-image.ts";
import { RegistryClient } from "../client/registry-client.ts";
import { digestOf } from "../digest.ts";
import { readAll } from "../client/http.ts";
import { parseImageName } from "../image-name.ts";
import { createLayer } from "../layer.ts";
import { pushImage } from "../push-image.ts";
import { FunctionBuild } from "./function-build.ts";
import { readSourceImage } from "./read-source-image.ts";
import { createSourceImage } from "./source-image.ts";

const rounds = 3;
const bodyLimit = 64 * 1024;

/** Builds a few images of one file, from source image to attestations, and keeps nothing. Writes to no disk and prints nothing. */
export async function rehearse(): Promise<void> {
  const server = registryInMemory();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = new RegistryClient({ attempts: 1 });
  try {
    const base = `${host}/rehearsal/base:1`;
    const layers = [await createLayer([{ path: "usr/src/app/server.cjs", content: "" }])];
    await pushImage(client, assembleImage({ layers }), parseImageName(base));
    for (let round = 0; round < rounds; round++) await buildOne(client, host, base, round);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

async function buildOne(
  client: RegistryClient,
  host: string,
  base: string,
  round: number,
): Promise<void> {
  const repository = `${host}/rehearsal/source`;
  const file = { path: "handler.js", content: `exports.main = () => ${round};`, mode: 0o644 };
  const { image } = await (await createSourceImage([file], "")).push(client, repository);
  const build = await FunctionBuild.open(
    {
      client,
      source: "",
      runtime: "nodejs24",
      base,
      destination: `${host}/rehearsal/function:${round}`,
      scratch: "",
    },
    "",
    await readSourceImage(client, image),
  );
  await build.push(await build.fetch());
}

/** As much of a registry (OCI distribution specification 1.1) as a build of small blobs asks for. */
function registryInMemory(): Server {
  const blobs = new Map<string, Buffer>();
  const manifests = new Map<string, { type: string; bytes: Buffer }>();
  return createServer((request, response) => {
    const { method = "", headers } = request;
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://registry");
    const [, kind, reference = ""] = /\/(blobs|manifests)\/([^/]+)\/?$/.exec(pathname) ?? [];
    const answer = async () => {
      const body = await readAll(request, bodyLimit);
      if (method === "POST") {
        const digest = searchParams.get("digest") ?? searchParams.get("mount") ?? "";
        if (searchParams.has("digest")) blobs.set(digest, body);
        response.statusCode = 201;
      } else if (method === "PUT") {
        const manifest = { type: headers["content-type"] ?? "", bytes: body };
        for (const key of [reference, digestOf(body)]) manifests.set(key, manifest);
        response.statusCode = 201;
        response.setHeader("oci-subject", "any");
      } else {
        const found = kind === "blobs" ? blobs.get(reference) : manifests.get(reference)?.bytes;
        const type = kind === "blobs" ? undefined : manifests.get(reference)?.type;
        response.statusCode = found ? 200 : 404;
        if (found) response.setHeader("content-length", found.length);
        if (type) response.setHeader("content-type", type);
        return response.end(method === "HEAD" ? undefined : found);
      }
      return response.end();
    };
    answer().catch(() => response.destroy());
  });
}
