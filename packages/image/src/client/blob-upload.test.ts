import { describe, expect, test } from "vitest";
import { digestOf, parseImageName, RegistryClient } from "../index.ts";
import { registryBehind } from "../testing/registry-behind.ts";

describe("an upload that breaks", () => {
  const large = Buffer.alloc(9 * 1024 * 1024, "0123456789");
  const pieces = async function* () {
    for (let at = 0; at < large.length; at += 65_536)
      yield await Promise.resolve(large.subarray(at, at + 65_536));
  };

  test("goes on where it broke", async () => {
    const methods: string[] = [];
    let breaks = 2;
    let received = 0;
    const host = await registryBehind((request) => {
      methods.push(`${request.method} ${request.headers["content-range"] ?? ""}`.trim());
      if (request.method !== "PATCH") return false;
      const { socket } = request;
      const before = socket.bytesRead;
      // A turn of the event loop may read as much again before it is looked at.
      const look = setInterval(() => {
        if (breaks === 0 || socket.bytesRead - before < 2_000_000) return;
        breaks--;
        socket.destroy();
      }, 0);
      socket.once("close", () => {
        received += socket.bytesRead;
        clearInterval(look);
      });
      request.once("end", () => clearInterval(look));
      return false;
    });
    const name = parseImageName(`${host}/a`);
    const client = new RegistryClient();
    await client.putBlob(name, digestOf(large), { size: large.length, open: pieces });
    expect(await client.hasBlob(name, digestOf(large))).toBe(true);
    expect(methods.filter((each) => each.startsWith("POST"))).toHaveLength(1);
    const starts = methods
      .filter((each) => each.startsWith("PATCH"))
      .map((each) => Number(/(\d+)-/.exec(each)?.[1]));
    expect(starts).toHaveLength(3);
    expect(starts[1]).toBeGreaterThan(0);
    expect(starts[2]).toBeGreaterThan(starts[1] ?? 0);
    expect(received).toBeGreaterThan(0);
    expect(received).toBeLessThan(large.length * 1.5);
  });

  test("begins anew when the registry has forgotten it", async () => {
    let patches = 0;
    const host = await registryBehind((request, response) => {
      if (request.method === "PATCH" && ++patches === 1) {
        request.destroy();
        return true;
      }
      if (request.method === "GET" && request.url?.includes("/uploads/")) {
        response.writeHead(404).end();
        return true;
      }
      return false;
    });
    const name = parseImageName(`${host}/a`);
    const client = new RegistryClient();
    await client.putBlob(name, digestOf(large), { size: large.length, open: () => large });
    expect(await client.hasBlob(name, digestOf(large))).toBe(true);
  });
});
