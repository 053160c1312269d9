import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { readDockerConfig } from "../index.ts";
import { temporaryDirectory } from "../testing/registry.ts";

describe("registry credentials", () => {
  test("come from a docker configuration, in every form it has", async () => {
    const dir = temporaryDirectory();
    const auths = {
      "a.io:5000": { auth: Buffer.from("u:p:q").toString("base64") },
      "https://b.io/v2/": { username: "u", password: "p" },
      "https://index.docker.io/v1/": { auth: Buffer.from("hub:p").toString("base64") },
      "c.io": {},
      "d.io": { auth: Buffer.from("00000000-0000:").toString("base64"), identitytoken: "refresh" },
    };
    writeFileSync(join(dir, "config.json"), JSON.stringify({ auths }));
    const credentials = readDockerConfig(dir);
    expect(await credentials("a.io:5000")).toEqual({ username: "u", password: "p:q" });
    expect(await credentials("b.io")).toEqual({ username: "u", password: "p" });
    expect(await credentials("docker.io")).toEqual({ username: "hub", password: "p" });
    expect(await credentials("c.io")).toBeUndefined();
    expect(await credentials("d.io")).toEqual({ identityToken: "refresh" });
    expect(await readDockerConfig(join(dir, "none"))("a.io:5000")).toBeUndefined();
    writeFileSync(join(dir, "config.json"), '{"auths": secret');
    expect(() => readDockerConfig(dir)).toThrow(/config\.json: not valid JSON$/);
  });

  test("come from the helpers that the configuration names", async () => {
    const dir = temporaryDirectory();
    const helper = (name: string, script: string) =>
      writeFileSync(join(dir, `docker-credential-${name}`), `#!/bin/sh\n${script}\n`, {
        mode: 0o755,
      });
    helper(
      "store",
      'read host; echo asked >> "$0.log"; echo "{\\"Username\\":\\"u\\",\\"Secret\\":\\"for $host\\"}"',
    );
    helper("empty", "echo credentials not found in native keychain; exit 1");
    helper("token", `echo '{"Username":"<token>","Secret":"refresh"}'`);
    helper("broken", "echo secret-token; exit 0");
    const { PATH } = process.env;
    process.env["PATH"] = `${dir}:${PATH}`;
    onTestFinished(() => void (process.env["PATH"] = PATH));
    const config = {
      auths: { "https://a.io/v1/": {} },
      credsStore: "store",
      credHelpers: {
        "b.io": "empty",
        "c.io": "missing",
        "d.io": "../sh",
        "e.io": "broken",
        "f.io": "token",
      },
    };
    writeFileSync(join(dir, "config.json"), JSON.stringify(config));
    const credentials = readDockerConfig(dir);
    const known = { username: "u", password: "for https://a.io/v1/" };
    expect(await credentials("a.io")).toEqual(known);
    expect(await credentials("a.io")).toEqual(known);
    expect(readFileSync(join(dir, "docker-credential-store.log"), "utf8")).toBe("asked\n");
    expect(await credentials("other.io")).toEqual({ username: "u", password: "for other.io" });
    expect(await credentials("b.io")).toBeUndefined();
    expect(await credentials("f.io")).toEqual({ identityToken: "refresh" });
    await expect(credentials("c.io")).rejects.toThrow(/the program was not found on the PATH/);
    await expect(credentials("d.io")).rejects.toThrow(/a credential helper's name/);
    const failure: unknown = await credentials("e.io").catch((error: unknown) => error);
    expect(String(failure)).toMatch(/the answer has no Username and Secret$/);
  });
});
