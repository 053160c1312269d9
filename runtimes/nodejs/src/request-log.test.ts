/** One line in the log for what a caller has to ask about, with the id that the caller has. */
import { describe, expect, test } from "vitest";
import { send, startFunction } from "./testing/running-function.ts";

const handler = `
  export async function main({ extensions: { request } }) {
    if (request.path === "/throw") throw new Error("thrown");
    if (request.path === "/exit") setTimeout(() => process.exit(3), 50);
    if (request.path !== "/") await new Promise(() => {});
    return "fine";
  }`;
const files = { "handler.mjs": handler };
const as = (id: string) => ({ headers: { "x-request-id": id } });

describe.each([{}, { FUNC_LOG_FORMAT: "json" }])("with %j", (env) => {
  test("a time limit, a large body, an error and an end of the process are each logged with the request's id", async () => {
    const limits = { FUNC_TIMEOUT: "1", FUNC_BODY_MB_LIMIT: "1" };
    const fn = await startFunction(files, { ...limits, ...env });
    const line = (text: string) =>
      fn
        .stderr()
        .split("\n")
        .filter((each) => each.includes(text));
    expect((await send(`${fn.url}/slow?secret=1`, as("late-1"))).status).toBe(408);
    await expect
      .poll(() => line("request late-1 (GET /slow): exceeded its time limit (1 s)"))
      .toHaveLength(1);
    const body = "x".repeat(2 * 1024 * 1024);
    const large = await send(fn.url, { method: "POST", body, ...as("large-1") });
    expect(large).toMatchObject({ status: 413, headers: { "x-request-id": "large-1" } });
    await expect
      .poll(() => line("request large-1 (POST /): the request body is larger than 1 MB"))
      .toHaveLength(1);
    const thrown = await send(`${fn.url}/throw`);
    expect(thrown.status).toBe(500);
    const id = thrown.headers["x-request-id"];
    await expect
      .poll(() => line(`request ${id?.toString()} (GET /throw): the handler threw`))
      .toHaveLength(1);
    await expect(send(`${fn.url}/exit`, as("end-1"))).rejects.toThrow();
    await fn.exited;
    expect(fn.stderr()).toContain("was called; this also ended request end-1 (GET /exit)");
    expect(fn.stderr()).not.toContain("secret");
    if ("FUNC_LOG_FORMAT" in env)
      expect(JSON.parse(line("late-1")[0] ?? "")).toMatchObject({ invocation: "late-1" });
  });
});
