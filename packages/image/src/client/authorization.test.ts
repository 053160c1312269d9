import { describe, expect, test } from "vitest";
import { assembleImage, createLayer, parseImageName, pushImage, RegistryClient } from "../index.ts";
import { registryBehind } from "../testing/registry-behind.ts";
import { parseChallenge } from "./authorization.ts";

describe("a registry client", () => {
  test("gets a token when it is asked for one, once per scope", async () => {
    const asked: string[] = [];
    const host = await registryBehind((request, response) => {
      const url = new URL(request.url ?? "", "http://x");
      if (url.pathname === "/token") {
        expect(request.headers.authorization).toBe(
          `Basic ${Buffer.from("me:secret").toString("base64")}`,
        );
        asked.push(url.searchParams.getAll("scope").join(" "));
        response.end(JSON.stringify({ token: `for ${asked.at(-1)}`, expires_in: 300 }));
        return true;
      }
      if (request.headers.authorization?.startsWith("Bearer for repository:a")) return false;
      const challenge = `Bearer realm="http://${request.headers.host}/token",service="registry",scope="x"`;
      response.writeHead(401, { "www-authenticate": challenge }).end();
      return true;
    });
    const client = new RegistryClient({
      credentials: () => ({ username: "me", password: "secret" }),
    });
    const image = assembleImage({ layers: [await createLayer([{ path: "a", content: "1" }])] });
    const name = parseImageName(`${host}/a:1`);
    await pushImage(client, image, name);
    expect((await client.resolveImage(name)).digest).toBe(image.digest);
    expect(new Set(asked)).toEqual(new Set(["repository:a:pull", "repository:a:pull,push"]));
  });

  test("signs in with an identity token", async () => {
    const forms: Record<string, string>[] = [];
    const host = await registryBehind((request, response) => {
      if (request.url === "/token") {
        expect([request.method, request.headers.authorization]).toEqual(["POST", undefined]);
        let text = "";
        request.on("data", (chunk: Buffer) => (text += chunk.toString()));
        request.on("end", () => {
          forms.push(Object.fromEntries(new URLSearchParams(text)));
          response.end(JSON.stringify({ access_token: "short-lived", expires_in: 300 }));
        });
        return true;
      }
      if (request.headers.authorization === "Bearer short-lived") return false;
      expect(request.headers.authorization).toBeUndefined();
      const challenge = `Bearer realm="http://${request.headers.host}/token",service="registry"`;
      response.writeHead(401, { "www-authenticate": challenge }).end();
      return true;
    });
    const client = new RegistryClient({ credentials: () => ({ identityToken: "refresh" }) });
    expect(await client.headManifest(parseImageName(`${host}/a:1`))).toBeUndefined();
    const grant = { grant_type: "refresh_token", refresh_token: "refresh", client_id: "spry" };
    expect(forms).toEqual([{ ...grant, service: "registry", scope: "repository:a:pull" }]);
  });
});

test("credentials are asked for by a challenge that is read leniently", () => {
  const parameters = { realm: "https://r.io/token", service: "r.io" };
  expect(parseChallenge('Bearer realm="https://r.io/token",service="r.io"')).toEqual({
    scheme: "bearer",
    parameters,
  });
  expect(parseChallenge("bearer realm=https://r.io/token, service=r.io")).toEqual({
    scheme: "bearer",
    parameters,
  });
  expect(parseChallenge("Negotiate")).toBeUndefined();
});
