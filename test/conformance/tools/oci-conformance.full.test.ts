/** The official OCI distribution conformance suite, unmodified, against our registry. */
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createRegistry } from "@spry/image";
import { expect, onTestFinished, test } from "vitest";
import { ociConformance } from "../../../tools/foreign-tools/oci-conformance.ts";
import { onlyLogin } from "../../../packages/image/src/testing/only-login.ts";

const suite = ociConformance();

test.skipIf(!existsSync(suite))(
  "the conformance suite finds no failure (needs: npm run foreign-tools)",
  { timeout: 300_000 },
  async () => {
    const dir = mkdtempSync(path.join(tmpdir(), "spry-oci-"));
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
    const credentials = { username: "somebody", password: "secret" };
    const logins = onlyLogin(credentials);
    const registry = createRegistry({ dir: path.join(dir, "registry"), logins });
    onTestFinished(() => registry.close());
    const server = await registry.listen({ host: "127.0.0.1", port: 0 });
    onTestFinished(() => server.close());

    const everything = {
      OCI_VERSION: "1.1",
      OCI_REGISTRY: `127.0.0.1:${server.port}`,
      OCI_TLS: "disabled",
      OCI_REPO1: "conformance/one",
      OCI_REPO2: "conformance/two",
      OCI_USERNAME: credentials.username,
      OCI_PASSWORD: credentials.password,
      OCI_API_BLOBS_UPLOAD_CANCEL: "true",
      OCI_API_BLOBS_DIGEST_HEADER: "true",
      OCI_API_MANIFESTS_DIGEST_HEADER: "true",
      OCI_API_MANIFESTS_TAG_PARAM: "true",
      // Nodes take every layer from the registry, those with `urls`, too: manifest-check.ts.
      OCI_DATA_NONDISTRIBUTABLE: "false",
      OCI_RESULTS_DIR: path.join(dir, "results"),
    };
    const finished = await finish(suite, [], everything);
    const report = readFileSync(path.join(dir, "results/junit.xml"), "utf8");
    const failed = [
      ...report.matchAll(/<testcase name="([^"]*)"[^>]*>\s*<(failure|error|skipped)/g),
    ];
    expect(failed.map(([, name, how]) => `${how}: ${name}`)).toEqual([]);
    expect(finished, finished.output).toMatchObject({ code: 0 });
    expect(Number(/ tests="(\d+)"/.exec(report)?.[1])).toBeGreaterThan(900);
  },
);

function finish(
  file: string,
  args: string[],
  env: NodeJS.ProcessEnv = {},
): Promise<{ code: number; output: string }> {
  const options = {
    env: { ...process.env, ...env },
    maxBuffer: 2 ** 24,
  };
  return new Promise((resolve) => {
    execFile(file, args, options, (error, stdout, stderr) => {
      const code = error ? Number(error.code ?? 1) : 0;
      resolve({ code, output: `${stdout.slice(-4000)}${stderr.slice(-4000)}` });
    });
  });
}
