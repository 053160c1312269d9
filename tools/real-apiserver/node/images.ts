/** The node's own images: one program each, without a registry. */
import path from "node:path";
import { assembleImage, createLayer, writeImageLayout } from "@spry/image";
import { binaryOf } from "../binaries.ts";

export const pauseImage = "spry.invalid/pause:1";
export const dnsImage = "spry.invalid/coredns:1";

/** Writes both to an OCI image layout. */
export async function writeNodeImages(dir: string): Promise<void> {
  for (const [name, program] of [
    [pauseImage, "pause"],
    [dnsImage, "coredns"],
  ] as const) {
    const file = { path: program, file: binaryOf(program), mode: 0o755 };
    const layer = await createLayer([file], { scratchFile: path.join(dir, `${program}.layer`) });
    const config = { Entrypoint: [`/${program}`], User: "65532:65532" };
    const image = assembleImage({ layers: [layer], config });
    await writeImageLayout(image, path.join(dir, "images"), name);
  }
}
