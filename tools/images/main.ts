/** Program: `npm run images -- --to REGISTRY | oci:DIR`. See docs/cluster.md. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import {
  type AssembledImage,
  formatImageName,
  parseImageName,
  pushImage,
  readDockerConfig,
  RegistryClient,
  writeImageLayout,
} from "@spry/image";
import { messageOf } from "@spry/kube";
import { readAuthority } from "../../packages/cli/src/registry-authority.ts";
import { Kitchen, recipes } from "./images.ts";
import { endBundling } from "./programs.ts";

const usage = `npm run images -- --to REGISTRY

  makes the images of controller, registry, gateway, eventing, builders and runtimes from this checkout and this machine's
  interpreters, writes them to a registry, and prints each with its digest

  --to REGISTRY     host[:port][/path], with the credentials of docker's config.json; or oci:DIR,
                    a directory in the OCI image layout
  --tag TAG         default: latest
  --only NAMES      only these, separated by commas (controller,builder,nodejs24)
  --values FILE     writes the names by digest as values for \`spry install\` and Helm
  --name PREFIX     the registry as the cluster's nodes name it, when that differs (with oci:DIR: spry.invalid)
  --plain           speak HTTP without TLS, as to a registry on loopback
  --registry-ca FILE  certificate (PEM) of the registry's private authority`;

const { values } = parseArgs({
  options: {
    to: { type: "string" },
    tag: { type: "string", default: "latest" },
    only: { type: "string" },
    values: { type: "string" },
    name: { type: "string" },
    plain: { type: "boolean", default: false },
    "registry-ca": { type: "string" },
    help: { type: "boolean", short: "h", default: false },
  },
});
if (values.help || !values.to) {
  console.error(usage);
  process.exit(values.help ? 0 : 2);
}
const [, layout] = /^oci:(.+)$/s.exec(values.to) ?? [];
const prefix = values.name ?? (layout === undefined ? values.to : "spry.invalid");
const only = values.only?.split(",");
const scratch = mkdtempSync(path.join(tmpdir(), "spry-images-"));
const docker = process.env["DOCKER_CONFIG"] ?? path.join(homedir(), ".docker");
const plain = values.plain ? [parseImageName(`${values.to}/x`).host] : [];
const made: Record<string, string> = {};
let client: RegistryClient;
try {
  const file = values["registry-ca"];
  const authority = file === undefined ? undefined : readAuthority(file);
  client = new RegistryClient({ credentials: readDockerConfig(docker), plain, authority });
  // A registry that cannot be used is known before the first image is made.
  if (layout === undefined)
    await client.headManifest(parseImageName(`${values.to}/spry/controller:${values.tag}`));
  const kitchen = new Kitchen(scratch);
  for (const recipe of await recipes()) {
    if (only && !only.includes(recipe.name)) continue;
    if (recipe.whyNot) {
      console.error(`${recipe.name.padEnd(20)} left out: ${recipe.whyNot}`);
      continue;
    }
    const image = await recipe.make(kitchen);
    await write(image, recipe.name);
    made[recipe.name] = `${prefix}/spry/${recipe.name}@${image.digest}`;
    console.log(made[recipe.name]);
  }
} catch (error) {
  process.exitCode = 1;
  console.error(error instanceof Error ? `error: ${messageOf(error)}` : error);
} finally {
  await endBundling();
  rmSync(scratch, { recursive: true, force: true });
}
const unknown = only?.filter((name) => !Object.hasOwn(made, name)) ?? [];
if (unknown.length > 0 && !process.exitCode) {
  console.error(`error: not made: ${unknown.join()}`);
  process.exitCode = 1;
}
if (values.values) {
  writeFileSync(values.values, `${JSON.stringify({ images: made }, undefined, 2)}\n`);
}

async function write(image: AssembledImage, name: string): Promise<void> {
  if (layout !== undefined) {
    return writeImageLayout(image, layout, `${prefix}/spry/${name}:${values.tag}`);
  }
  const target = parseImageName(`${values.to}/spry/${name}:${values.tag}`);
  const { sentBytes } = await pushImage(client, image, target);
  const size = `${(sentBytes / 2 ** 20).toFixed(1)} MiB sent`;
  console.error(`${formatImageName(target)}: ${size}`);
}
