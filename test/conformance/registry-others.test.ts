/** Our client with Debian's docker-registry, our images with skopeo: nothing of either side is ours. */
import { execFile, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import {
  assembleImage,
  createLayer,
  createRegistry,
  digestOf,
  parseImageName,
  pullImage,
  pushImage,
  readCertificates,
  readDockerConfig,
  RegistryClient,
} from "@spry/image";
import { describe, expect, onTestFinished, test } from "vitest";
import { onlyLogin } from "../../packages/image/src/testing/only-login.ts";
import { hasDockerRegistry, startDockerRegistry } from "../support/docker-registry.ts";

const user = { username: "somebody", password: "a secret: with a colon" };
const hasSkopeo = spawnSync("skopeo", ["--version"]).status === 0;

function scratch(): string {
  const dir = mkdtempSync(path.join(tmpdir(), "spry-others-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

async function image() {
  const files = [{ path: "app/hello.txt", content: Buffer.from("hello") }];
  return assembleImage({ layers: [await createLayer(files)], config: { Cmd: ["sh"] } });
}

describe.skipIf(!hasDockerRegistry)("with docker-registry (needs Debian's docker-registry)", () => {
  test("we push and pull over TLS of a private authority, with a password", async () => {
    const registry = await startDockerRegistry({ ...user, tls: true });
    onTestFinished(() => registry.stop());
    const config = scratch();
    const auth = Buffer.from(`${user.username}:${user.password}`).toString("base64");
    const auths = { [registry.host]: { auth } };
    writeFileSync(path.join(config, "config.json"), JSON.stringify({ auths }));
    mkdirSync(path.join(config, "certs.d", registry.host), { recursive: true });
    writeFileSync(path.join(config, "certs.d", registry.host, "ca.crt"), registry.ca);
    const client = new RegistryClient({
      credentials: readDockerConfig(config),
      certificates: readCertificates(config),
      attempts: 2,
    });

    const name = parseImageName(`${registry.host}/team/app:v1`);
    const pushed = await pushImage(client, await image(), name);
    expect(await client.headManifest(name)).toBe(pushed.digest);
    const { digest, config: found } = await client.resolveImage(name);
    expect([digest, found.config?.Cmd]).toEqual([pushed.digest, ["sh"]]);

    const large = Buffer.alloc(9 * 1024 * 1024, "large");
    await client.putBlob(name, digestOf(large), { size: large.length, open: () => large });
    const other = parseImageName(`${registry.host}/team/other`);
    expect(await client.mountBlob(other, digestOf(large), "team/app")).toBe(true);
    expect(await client.hasBlob(other, digestOf(large))).toBe(true);
    await client.deleteManifest({ ...name, digest });
    expect(await client.headManifest(name)).toBeUndefined();

    const stranger = new RegistryClient({ certificates: () => registry.ca, attempts: 1 });
    await expect(stranger.headManifest(name)).rejects.toThrow(/401/);
    const distrustful = new RegistryClient({ certificates: () => "", attempts: 1 });
    await expect(distrustful.headManifest(name)).rejects.toMatchObject({ status: 0 });
  });

  test("an upload that breaks goes on where docker-registry says", async () => {
    const registry = await startDockerRegistry(user);
    onTestFinished(() => registry.stop());
    const client = new RegistryClient({ credentials: () => user });
    const name = parseImageName(`${registry.host}/a`);
    const large = Buffer.alloc(20 * 1024 * 1024, "0123456789");
    let opened = 0;
    const open = async function* () {
      const breaks = ++opened === 1;
      for (let at = 0; at < large.length; at += 65_536) {
        if (breaks && at > 10_000_000) throw new Error("the line is cut");
        yield await Promise.resolve(large.subarray(at, at + 65_536));
      }
    };
    await client.putBlob(name, digestOf(large), { size: large.length, open });
    expect(opened).toBe(2);
    expect(await client.hasBlob(name, digestOf(large))).toBe(true);
  });
});

describe.skipIf(!hasSkopeo)("with skopeo (needs Debian's skopeo)", () => {
  test("our images are inspected and copied, and images are pushed to us", async () => {
    const dir = scratch();
    const logins = onlyLogin(user);
    const registry = createRegistry({ dir: path.join(dir, "registry"), logins });
    onTestFinished(() => registry.close());
    const server = await registry.listen({ host: "127.0.0.1", port: 0 });
    onTestFinished(() => server.close());
    const host = `127.0.0.1:${server.port}`;
    const client = new RegistryClient({ credentials: () => user });
    const { digest } = await pushImage(client, await image(), parseImageName(`${host}/app:v1`));

    const policy = path.join(dir, "policy.json");
    writeFileSync(policy, JSON.stringify({ default: [{ type: "insecureAcceptAnything" }] }));
    const credentials = `${user.username}:${user.password}`;
    const skopeo = async (...args: string[]) =>
      (await promisify(execFile)("skopeo", ["--policy", policy, ...args])).stdout;
    const source = [
      `--src-creds=${credentials}`,
      "--src-tls-verify=false",
      `docker://${host}/app:v1`,
    ];
    const access = [`--creds=${credentials}`, "--tls-verify=false"];
    const inspected = JSON.parse(
      await skopeo("inspect", ...access, `docker://${host}/app:v1`),
    ) as object;
    expect(inspected).toMatchObject({ Digest: digest, Layers: [expect.any(String)] });

    await skopeo("copy", ...source, `oci:${dir}/layout:v1`);
    expect(readFileSync(path.join(dir, "layout/index.json"), "utf8")).toContain(digest);
    await skopeo("copy", ...source, `docker-archive:${dir}/archive.tar:app:v1`);

    const target = [`--dest-creds=${credentials}`, "--dest-tls-verify=false"];
    await skopeo(
      "copy",
      ...target,
      `docker-archive:${dir}/archive.tar`,
      `docker://${host}/back:v1`,
    );
    const pulled = await pullImage(client, `${host}/back:v1`, path.join(dir, "pulled"));
    expect(pulled).toBeDefined();
  });
});
