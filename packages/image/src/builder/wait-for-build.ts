/**
 * A builder that has loaded all of its program and waits for its build
 * (docs/adr/0031-warm-deployments-and-builds.md). It holds nothing of any Function while it waits, gets one build,
 * and ends with it.
 */
import { once } from "node:events";
import { writeSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, Socket } from "node:net";
import { assembleImage } from "../assemble-image.ts";
import { parseImageName } from "../image-name.ts";
import { createLayer } from "../layer.ts";
import { RegistryClient } from "../client/registry-client.ts";

const maxMessage = 2 * 1024 * 1024;
const rehearsals = 5;

interface Build {
  directory: string;
  env: Record<string, string>;
  args: string[];
}

/**
 * Where the variable `SPRY_WARM_FD` names a descriptor: waits there for one line, `{"directory": "/…", "env": {…}, "args": […]}` in JSON, and takes
 * these over. Returns "none" when the other side closes it without a word.
 */
export async function becomeBuild(): Promise<"mine" | "none"> {
  const descriptor = process.env["SPRY_WARM_FD"];
  if (descriptor === undefined) return "mine";
  await rehearse();
  writeSync(Number(process.env["SPRY_READY_FD"]), "waiting\n");
  const line = await readLine(
    new Socket({ fd: Number(descriptor), readable: true, writable: false }),
  );
  if (line === "") return "none";
  const { directory, env, args } = JSON.parse(line) as Build;
  for (const name of Object.keys(process.env)) Reflect.deleteProperty(process.env, name);
  Object.assign(process.env, env);
  process.chdir(directory);
  process.argv.push(...args);
  return "mine";
}

/** Code is compiled, and parts of Node.js are loaded, when they are first used. */
async function rehearse(): Promise<void> {
  const layer = await createLayer([{ path: "a", content: "a" }]);
  const { bytes } = assembleImage({ layers: [layer] });
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      const isRead = request.method === "GET";
      response.statusCode = isRead ? 200 : 404;
      response.setHeader("content-type", "application/vnd.oci.image.manifest.v1+json");
      response.end(isRead ? bytes : "");
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const client = new RegistryClient({ attempts: 1 });
  const name = parseImageName(`127.0.0.1:${port}/a/a:a`);
  for (let round = 0; round < rehearsals; round++) {
    await client.getManifest(name);
    await client.hasBlob(name, layer.descriptor.digest);
  }
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}

async function readLine(socket: Socket): Promise<string> {
  let text = "";
  for await (const chunk of socket.setEncoding("utf8") as AsyncIterable<string>) {
    text += chunk;
    if (text.length > maxMessage) throw new Error("receiving a build: the line is too long");
    if (text.includes("\n")) break;
  }
  socket.destroy();
  return text.trim();
}
