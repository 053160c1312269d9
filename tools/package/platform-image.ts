/** The container image of the whole platform: Node.js, npm, git and the npm package with what it depends on. */
import { execFileSync } from "node:child_process";
import path from "node:path";
import { type AssembledImage, assembleImage, createLayer, type Layer } from "@spry/image";
import { npmCli } from "../../packages/cli/src/platform/npm-cli.ts";
import { HostFiles } from "../images/host-files.ts";
import { Kitchen } from "../images/images.ts";

const place = "/opt/spry";
const major = process.versions.node.split(".")[0] ?? "";

/** `staging` has the package's files; its dependencies are installed there. `scratch` takes the layers until they are written. */
export async function platformImage(staging: string, scratch: string): Promise<AssembledImage> {
  const flags = ["--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  execFileSync(process.execPath, [npmCli(), "install", ...flags], {
    cwd: staging,
    stdio: ["ignore", 2, 2],
  });
  const kitchen = new Kitchen(scratch);
  const layers: Layer[] = [];
  for (const name of ["system", `node@${major}`, "npm", "git"])
    layers.push(await kitchen.layer(name));
  const own = new HostFiles();
  own.directory(staging, place);
  own.link("/usr/local/bin/spry", `${place}/packages/cli/bin/spry.mjs`);
  layers.push(
    await createLayer(own.list(), { scratchFile: path.join(scratch, "platform.tar.gz") }),
  );
  return assembleImage({
    layers,
    config: {
      // Without rights, Functions are processes of the same user; a container cannot be made in one that has none either.
      User: "1000:1000",
      Env: ["PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp"],
      Entrypoint: ["node", `${place}/packages/cli/bin/spry.mjs`],
      Cmd: ["up", "--data-dir", "/tmp/spry"],
      WorkingDir: "/tmp",
    },
  });
}
