/** Program: `npm run package [DIR]`. Makes the npm package of Spry from this checkout; prints the tarball's name. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pack, stage } from "./npm-package.ts";

const outdir = path.resolve(process.argv[2] ?? "dist");
const staging = mkdtempSync(path.join(tmpdir(), "spry-package-"));
try {
  await stage(staging);
  console.log(pack(staging, outdir));
} finally {
  rmSync(staging, { recursive: true, force: true });
}
