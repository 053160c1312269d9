import { expect, test } from "vitest";
import { KubeClient } from "@spry/kube";
import { followUntilRunning } from "./follow.ts";
import { silentProgress } from "./progress.ts";
import { UserError } from "./user-error.ts";

const metadata = { namespace: "default", name: "hello", generation: 1, resourceVersion: "1" };

/** The first watch is cut in the middle of its response; the next request is answered by `then`. */
function cutOnce(then: () => Response): KubeClient {
  let isCut = false;
  return new KubeClient(async ({ url }) => {
    if (isCut || !url.includes("watch=")) return then();
    isCut = true;
    const cause = Object.assign(new Error("aborted"), { code: "ECONNRESET" });
    return new Response(new ReadableStream({ pull: (body) => body.error(cause) }));
  });
}

const followed = (client: KubeClient) =>
  followUntilRunning(client, {
    ...metadata,
    timeoutMs: 5000,
    progress: silentProgress,
    stored: { metadata, spec: { runtime: "nodejs24", source: {} } },
  });

test("a connection that is cut is opened again", async () => {
  const types = ["ConfigurationReady", "BuildReady", "Running"];
  const conditions = types.map((type) => ({ type, status: "True" }));
  const ready = { metadata, status: { observedGeneration: 1, conditions } };
  const list = { kind: "FunctionList", metadata, items: [ready] };
  const client = cutOnce(() => Response.json(list));
  expect(await followed(client)).toMatchObject({ status: { observedGeneration: 1 } });
});

test("and where the server has gone, that is the message", async () => {
  const client = cutOnce(() => {
    throw new UserError("the API server cannot be reached");
  });
  await expect(followed(client)).rejects.toThrow("the API server cannot be reached");
});
