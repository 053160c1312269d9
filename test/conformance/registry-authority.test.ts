/** A registry behind TLS whose certificate is from a private authority, as inside of companies: all that push and pull know it by one option. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { networkInterfaces, tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { createApiServer } from "@spry/apiserver";
import { registryAuthorityVariable } from "@spry/function";
import {
  assembleImage,
  builderEntry,
  createLayer,
  createRegistry,
  parseImageName,
  pushImage,
  RegistryClient,
} from "@spry/image";
import { KubeClient, ManualClock, parseHostPort, resources } from "@spry/kube";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { createDigestResolver } from "../../packages/cli/src/image-digests.ts";
import {
  type DockerRegistry,
  hasDockerRegistry,
  startDockerRegistry,
} from "../support/docker-registry.ts";
import { cleanEnvironment, root } from "../support/platform.ts";

const user = { username: "somebody", password: "secret" };
/** On loopback no registry is spoken to over TLS. */
const outside = Object.values(networkInterfaces())
  .flatMap((each) => each ?? [])
  .find(({ family, internal }) => family === "IPv4" && !internal)?.address;

async function image() {
  const files = [{ path: "app/hello.txt", content: Buffer.from("hello") }];
  return assembleImage({ layers: [await createLayer(files)], config: { Cmd: ["sh"] } });
}

const failureOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "nothing failed",
    (error: unknown) => {
      const { message, cause } = error as Error;
      return cause instanceof Error ? `${message}: ${cause.message}` : message;
    },
  );

const can = hasDockerRegistry && outside !== undefined;
describe.skipIf(!can)("a registry of a private authority (needs Debian's docker-registry)", () => {
  const scratch = mkdtempSync(path.join(tmpdir(), "spry-authority-"));
  const authorityFile = path.join(scratch, "ca.pem");
  const docker = path.join(scratch, "docker");
  let registry: DockerRegistry;
  let base: string;

  beforeAll(async () => {
    registry = await startDockerRegistry({ ...user, tls: true, address: outside ?? "" });
    writeFileSync(authorityFile, registry.ca);
    const auth = Buffer.from(`${user.username}:${user.password}`).toString("base64");
    mkdirSync(docker);
    writeFileSync(
      path.join(docker, "config.json"),
      JSON.stringify({ auths: { [registry.host]: { auth } } }),
    );
    const client = new RegistryClient({ credentials: () => user, authority: registry.ca });
    const name = parseImageName(`${registry.host}/spry/base:v1`);
    base = `${registry.host}/spry/base@${(await pushImage(client, await image(), name)).digest}`;
  });
  afterAll(async () => {
    await registry?.stop();
    rmSync(scratch, { recursive: true, force: true });
  });

  const run = (program: string, args: string[]) =>
    promisify(execFile)(process.execPath, [path.join(root, program), ...args], {
      env: { ...cleanEnvironment(), DOCKER_CONFIG: docker },
    }).then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      (error: { code: number; stdout: string; stderr: string }) => error,
    );

  test("without the authority the error names it and the option", async () => {
    const client = new RegistryClient({ credentials: () => user, attempts: 1 });
    expect(await failureOf(client.headManifest(parseImageName(base)))).toMatch(
      /: the certificate of [\d.]+:\d+ is from an authority that is not known here \(unable to verify the first certificate\): [^]*--registry-ca FILE/,
    );
  });

  test("npm run images pushes with --registry-ca, and says why it cannot without", async () => {
    const args = ["--to", `${registry.host}/mine`, "--only", "gateway"];
    const refused = await run("tools/images/main.ts", args);
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.stderr).toMatch(/^error: .*is from an authority that is not known here/m);
    const made = await run("tools/images/main.ts", [...args, "--registry-ca", authorityFile]);
    expect(made).toMatchObject({ code: 0 });
    expect(made.stdout).toMatch(new RegExp(`^${registry.host}/mine/spry/gateway@sha256:`));
  }, 240_000);

  test.each([
    [
      "a file without a certificate",
      "none",
      /has no certificate\n +it is the authority's certificate in PEM/,
    ],
    ["a file that does not exist", undefined, /does not exist|not found|ENOENT/],
  ])("--registry-ca with %s is refused", async (_, content, says) => {
    const file = path.join(scratch, `wrong-${content ?? "missing"}`);
    if (content !== undefined) writeFileSync(file, content);
    const args = ["build", scratch, "--tag", `${registry.host}/x:1`, "--registry-ca", file];
    const { code, stderr } = await run("packages/cli/bin/spry.mjs", args);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(says) });
  });

  test("a builder starts from its images, and pushes to the platform's plain registry", async () => {
    const place = mkdtempSync(path.join(scratch, "build-"));
    const own = createRegistry({ dir: path.join(place, "registry") });
    const server = await own.listen({ host: outside ?? "", port: 0 });
    onTestFinished(async () => {
      await server.close();
      await own.close();
    });
    const plain = `${outside}:${server.port}`;
    const source = path.join(place, "source");
    for (const each of ["source", "workspace/build", "workspace/handover"])
      mkdirSync(path.join(place, each), { recursive: true });
    writeFileSync(path.join(source, "handler.js"), "exports.main = () => 1;");
    symlinkSync(docker, path.join(place, "docker"));
    const build = async (env: Record<string, string>) => {
      const end = path.join(place, "end");
      writeFileSync(end, "");
      const flags = {
        source,
        runtime: "nodejs24",
        base,
        destination: `${plain}/default/hello:1`,
        "plain-registry": plain,
        scratch: path.join(place, "workspace/build"),
        handover: path.join(place, "workspace/handover"),
        "registry-config": path.join(place, "none"),
      };
      const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
      const paths = { SPRY_ROOT: place, SPRY_TERMINATION_LOG: end, DOCKER_CONFIG: docker };
      const child = spawn(process.execPath, [builderEntry, ...args], {
        env: { PATH: process.env["PATH"], ...paths, ...env },
        stdio: "ignore",
      });
      const [code] = (await once(child, "close")) as [number];
      return { code, message: readFileSync(end, "utf8") };
    };
    expect(await build({})).toEqual({
      code: 2,
      message: expect.stringContaining("is from an authority that is not known here"),
    });
    expect(await build({ [registryAuthorityVariable]: registry.ca })).toEqual({
      code: 0,
      message: expect.stringContaining(`${plain}/default/hello@sha256:`),
    });
  });

  test("the controller finds the digest that a tag has there", async () => {
    const api = await createApiServer({ dataDir: ":memory:" });
    onTestFinished(() => api.close());
    const client = new KubeClient(api.transport());
    const namespace = "shop";
    await client.create(resources.namespaces, { metadata: { name: namespace } });
    await client.create(resources.secrets, {
      metadata: { namespace, name: "login" },
      type: "kubernetes.io/dockerconfigjson",
      data: {
        ".dockerconfigjson": readFileSync(path.join(docker, "config.json")).toString("base64"),
      },
    });
    const pods = {
      metadata: { namespace },
      spec: { containers: [], imagePullSecrets: [{ name: "login" }] },
    };
    const tagged = base.replace(/@.*/, ":v1");
    const resolved = (authority: string | undefined) =>
      createDigestResolver({
        client,
        clock: new ManualClock(),
        // The address that this machine has may be one that is not asked by itself.
        allowedLoopback: [parseHostPort(registry.host)!],
        authority,
      })(tagged, pods);
    expect(await resolved(undefined)).toBeUndefined();
    expect(await resolved(registry.ca)).toBe(base);
  });

  test("a registry without TLS is named as that, and the ways out are different on loopback", async () => {
    const client = new RegistryClient({ attempts: 1, authority: registry.ca });
    const withoutTls = await startDockerRegistry({ ...user, address: outside ?? "" });
    onTestFinished(() => withoutTls.stop());
    const name = (host: string) => parseImageName(`${host}/a:1`);
    expect(await failureOf(client.headManifest(name(withoutTls.host)))).toMatch(
      /does not speak TLS .*--plain, or in plainRegistries/,
    );
    const onLoopback = await startDockerRegistry({ ...user, tls: true });
    onTestFinished(() => onLoopback.stop());
    expect(await failureOf(client.getManifest(name(onLoopback.host)))).toContain(
      "registries on loopback are always spoken to without TLS",
    );
    const plain = new RegistryClient({ attempts: 1, plain: [registry.host] });
    expect(await failureOf(plain.getManifest(name(registry.host)))).toContain(
      "leave --plain and plainRegistries out if it expects TLS",
    );
  });
});
