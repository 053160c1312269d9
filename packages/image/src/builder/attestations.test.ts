/** The documents that come with an image, as other people's programs find them. */
import { spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { buildFunctionImage, parseImageName, RegistryClient } from "../index.ts";
import { type ImageIndex, type ImageManifest } from "../manifest.ts";
import { given } from "../testing/build.ts";
import { startNpmRegistry } from "../testing/npm-registry.ts";
import { temporaryDirectory } from "../testing/registry.ts";

// Installers run here, at the same time as the rest of the tests.
vi.setConfig({ testTimeout: 120_000 });

const files = {
  "handler.js": "module.exports = { main: () => 1 };",
  "package.json": '{"dependencies":{"@scope/a":"1.0.0"}}',
};
const packages = {
  "@scope/a@1.0.0": { manifest: { dependencies: { b: "*" } }, files: { "index.js": "" } },
  "b@2.0.0-rc.1": { files: { "index.js": "" } },
};
const json = async (url: string): Promise<unknown> => (await fetch(url)).json();

/** The one layer of each referrer, by its type. */
async function documents(url: string, list: ImageIndex): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {};
  for (const { digest, artifactType = "" } of list.manifests) {
    const manifest = (await json(`${url}/manifests/${digest}`)) as ImageManifest;
    expect(manifest.artifactType).toBe(artifactType);
    found[artifactType] = await json(`${url}/blobs/${manifest.layers[0]?.digest}`);
  }
  return found;
}

describe("an image", () => {
  test("comes with a bill of materials and its provenance, also when its layer is reused", async () => {
    const { npmConfig } = await startNpmRegistry({ packages });
    const origin = { url: "https://git.example/a.git", revision: "c".repeat(40) };
    const { build, host } = await given(files, { npmConfig, origin, title: "hello" });
    const first = await buildFunctionImage(build);
    const destination = build.destination.replace("hello", "other");
    const again = { ...build, destination, scratch: temporaryDirectory() };
    const second = await buildFunctionImage(again);
    for (const { image } of [first, second]) {
      const { repository, digest = "sha256:" } = parseImageName(image);
      const url = `http://${host}/v2/${repository}`;
      const list = (await json(`${url}/referrers/${digest}`)) as ImageIndex;
      const found = await documents(url, list);
      expect(Object.keys(found).sort()).toEqual([
        "application/vnd.cyclonedx+json",
        "application/vnd.in-toto+json",
      ]);
      expect(found["application/vnd.cyclonedx+json"]).toMatchObject({
        bomFormat: "CycloneDX",
        metadata: { component: { name: "hello", version: digest } },
        components: [{ purl: "pkg:npm/%40scope/a@1.0.0" }, { purl: "pkg:npm/b@2.0.0-rc.1" }],
      });
      expect(found["application/vnd.in-toto+json"]).toMatchObject({
        predicateType: "https://slsa.dev/provenance/v1",
        subject: [{ name: repository, digest: { sha256: digest.slice(7) } }],
        predicate: {
          buildDefinition: {
            externalParameters: { runtime: "nodejs24" },
            resolvedDependencies: [
              {},
              { uri: "git+https://git.example/a.git", digest: { gitCommit: origin.revision } },
            ],
          },
        },
      });
    }
    // Built once more, they are the same: nothing piles up.
    await buildFunctionImage({ ...build, scratch: temporaryDirectory() });
    const { repository, digest } = parseImageName(first.image);
    const list = (await json(`http://${host}/v2/${repository}/referrers/${digest}`)) as ImageIndex;
    expect(list.manifests).toHaveLength(2);
  });

  const hasDistribution = spawnSync("docker-registry", ["--version"]).status === 0;
  test.skipIf(!hasDistribution)(
    "tells of them by a tag where a registry keeps no referrers",
    async () => {
      const host = await startDistribution();
      const { build } = await given({ "handler.js": "" });
      const client = new RegistryClient();
      const destination = `${host}/default-hello:1`;
      const { image } = await buildFunctionImage({ ...build, client, destination });
      const { digest = "" } = parseImageName(image);
      const url = `http://${host}/v2/default-hello`;
      const accept = "application/vnd.oci.image.index.v1+json";
      const api = await fetch(`${url}/referrers/${digest}`);
      const tag = `${url}/manifests/${digest.replace(":", "-")}`;
      const list = api.ok ? api : await fetch(tag, { headers: { accept } });
      expect(((await list.json()) as ImageIndex).manifests).toHaveLength(2);
    },
  );
});

/** Debian's docker-registry on a free port. */
async function startDistribution(): Promise<string> {
  const dir = temporaryDirectory();
  const port = await new Promise<number>((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port: free } = probe.address() as { port: number };
      probe.close(() => resolve(free));
    });
  });
  const config = join(dir, "config.yml");
  writeFileSync(
    config,
    `version: 0.1\nstorage: {filesystem: {rootdirectory: ${dir}/data}}\nhttp: {addr: "127.0.0.1:${port}"}\n`,
  );
  const child = spawn("docker-registry", ["serve", config], { stdio: "ignore" });
  onTestFinished(() => void child.kill());
  const host = `127.0.0.1:${port}`;
  await expect
    .poll(() =>
      fetch(`http://${host}/v2/`).then(
        (answer) => answer.status,
        () => 0,
      ),
    )
    .toBe(200);
  return host;
}
