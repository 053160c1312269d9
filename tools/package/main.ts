/** Program: `npm run package [DIR] [--image DIR]`. Makes the npm package of Spry from this checkout; prints what it has made. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { writeImageLayout } from "@spry/image";
import { pack, stage } from "./npm-package.ts";
import { platformImage } from "./platform-image.ts";

const usage = `npm run package -- [DIR] [--image DIR]

  makes the npm package with which Spry runs without a checkout, in DIR (default: dist)

  --image DIR     also the container image of the platform, as an OCI image layout with the tag latest`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { image: { type: "string" }, help: { type: "boolean", short: "h" } },
});
if (values.help || positionals.length > 1) {
  console.error(usage);
  process.exit(values.help ? 0 : 2);
}
const outdir = path.resolve(positionals[0] ?? "dist");
const scratch = mkdtempSync(path.join(tmpdir(), "spry-package-"));
try {
  const staging = path.join(scratch, "package");
  mkdirSync(staging);
  await stage(staging);
  console.log(pack(staging, outdir));
  if (values.image !== undefined) {
    const image = await platformImage(staging, scratch);
    await writeImageLayout(image, values.image, "latest");
    console.log(`${values.image}:latest@${image.digest}`);
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
