/** What a Function's `console` writes about an error: its author's code, and nothing of ours. */
import { expect, test } from "vitest";
import { send, startFunction } from "./testing/running-function.ts";

const handler = `
const cause = new RangeError("too far");
function fail() {
  return Object.assign(new Error("broken", { cause }), { code: 7 });
}
exports.main = async ({ extensions: { request } }) => {
  if (request.path === "/error") console.error("seen:", fail());
  if (request.path === "/within") console.warn({ reason: new Error("inside") });
  if (request.path === "/trace") console.trace("here %d", 3);
  if (request.path === "/late") setImmediate(() => console.error(new Error("late")));
  if (request.path === "/throw") throw fail();
  if (request.path === "/plain") console.log("%s of %o", "100 %d", [1], { a: 1 });
  if (request.path === "/group") (console.group("outer"), console.error(new Error("in it")), console.groupEnd());
};
console.error(new Error("while it loads"));`;
const files = { "handler.js": handler };
const ofOthers = /runtime\.[cm]?js|server\.cjs|\(node:|at node:/;

test.each([{}, { FUNC_LOG_FORMAT: "text" }])(
  "an error that console writes has the frames of the Function alone, with %j",
  async (env) => {
    const fn = await startFunction(files, env);
    const output = () => fn.stderr() + fn.stdout();
    expect(fn.stderr()).toMatch(/Error: while it loads\n +at Object\.<anonymous> .*handler\.js:15/);
    for (const path of ["error", "within", "trace", "late", "throw", "group"])
      await send(`${fn.url}/${path}`);
    await expect.poll(output).toContain("Error: in it");
    expect(fn.stderr()).toMatch(
      /seen: Error: broken\n +at fail \(.*handler\.js:4:\d+\)\n +at .*handler\.js:7:\d+\)? \{\n +code: 7,\n +\[cause\]: RangeError: too far\n +at .*handler\.js:2/,
    );
    expect(output()).toMatch(/inside\n +at .*handler\.js:8/);
    expect(output()).toMatch(/Trace: here 3\n +at .*handler\.js:9/);
    await expect.poll(output).toMatch(/late\n +at .*handler\.js:10/);
    expect(fn.stderr()).toMatch(/the handler threw: Error: broken\n +at fail .*handler\.js:4/);
    expect(
      output()
        .split("\n")
        .filter((line) => ofOthers.test(line)),
    ).toEqual([]);
  },
);

test("what console writes is otherwise as Node.js has it", async () => {
  const fn = await startFunction(files);
  await send(`${fn.url}/plain`);
  await expect.poll(fn.stdout).toContain("100 %d of [ 1, [length]: 1 ] { a: 1 }\n");
  await send(`${fn.url}/group`);
  await expect.poll(fn.stderr).toMatch(/\n {2}Error: in it\n {6}at .*handler\.js:13/);
});
