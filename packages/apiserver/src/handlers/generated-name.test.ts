import { randomBytes } from "node:crypto";
import { KubeClient, resources } from "@spry/kube";
import { afterAll, beforeAll, expect, test, vi } from "vitest";

vi.mock("node:crypto", { spy: true });
// Other files of this process have loaded the modules before, and more will: with the real numbers.
beforeAll(() => void vi.resetModules());
afterAll(() => {
  vi.restoreAllMocks();
  vi.resetModules();
});

test("a generated name that is taken is generated again, eight times in all", async () => {
  const { createApiServer } = await import("../index.ts");
  const server = await createApiServer({ dataDir: ":memory:" });
  const client = new KubeClient(server.transport());
  const create = () =>
    client.create(resources.configMaps, {
      metadata: { generateName: "a-", namespace: "default" },
    });
  const drawn: number[] = [];
  vi.mocked(randomBytes).mockImplementation((size: number) =>
    Buffer.alloc(size, drawn.shift() ?? 0),
  );

  expect((await create()).metadata.name).toBe("a-bbbbb");
  drawn.push(0, 0, 1);
  expect((await create()).metadata.name).toBe("a-ccccc");
  drawn.push(0, 0, 0, 0, 0, 0, 0, 2);
  expect((await create()).metadata.name).toBe("a-ddddd");
  drawn.push(0, 0, 0, 0, 0, 0, 0, 0, 3);
  await expect(create()).rejects.toThrow('configmaps "a-bbbbb" already exists');
  await server.close();
});
