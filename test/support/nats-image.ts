import { readFileSync } from "node:fs";
import path from "node:path";
import { assembleImage, createLayer, parseImageName, pushImage, RegistryClient } from "@spry/image";
import { natsProgram, natsVersion } from "../../tools/nats-server/binary.ts";

/** An image like the official one, with the nats-server that was built here; its name by digest. */
export async function pushNatsImage(registry: string, scratch: string): Promise<string> {
  const program = "usr/local/bin/nats-server";
  const layer = await createLayer(
    [{ path: program, content: readFileSync(natsProgram()), mode: 0o755 }],
    { scratchFile: path.join(scratch, "nats.tar.gz") },
  );
  const image = assembleImage({
    layers: [layer],
    config: { Entrypoint: [`/${program}`] },
  });
  const client = new RegistryClient({ plain: [registry] });
  const name = parseImageName(`${registry}/nats:${natsVersion().slice(1)}`);
  await pushImage(client, image, name);
  return `${registry}/nats@${image.digest}`;
}
