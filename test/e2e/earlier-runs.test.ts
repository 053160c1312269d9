/** What a Function wrote before it ended, more than once. */
import { expect, test } from "vitest";
import { enginePlatform } from "../support/engine.ts";
import { functionManifest } from "../support/platform.ts";

const platform = enginePlatform();

const source = `module.exports = { main: async (event, context) => {
  const { path, query } = event.extensions.request;
  if (path === "/die") { console.log("last words " + query.n); setTimeout(() => process.exit(3), 50); }
  return "lives";
} };`;

test("logs --previous joins the runs of a container that ended, and kubectl has the last", async () => {
  await platform.k("apply -f -", functionManifest("mortal", source));
  await platform.k("wait --for=condition=Running function/mortal --timeout=60s");
  const selector =
    "-l serverless.kyma-project.io/function-name=mortal,serverless.kyma-project.io/resource=deployment";
  const restarts = `get pods ${selector} -o jsonpath={.items[*].status.containerStatuses[*].restartCount}`;
  for (let n = 1; n <= 2; n++) {
    await platform.callUntil("mortal.default", ({ status }) => status === 200);
    await platform.call("mortal.default", { path: `/die?n=${n}` });
    await expect.poll(() => platform.k(restarts), { timeout: 60_000 }).toBe(String(n));
    const { stdout } = await platform.spry(["logs", "mortal", "--previous"]);
    const words = stdout.split("\n").filter((line) => line.includes("last words"));
    const kept = Array.from({ length: n }, (_, index) => index + 1);
    // One alone needs no mark.
    expect(words).toEqual(
      n === 1
        ? ["last words 1"]
        : kept.map((run) =>
            expect.stringMatching(new RegExp(`^\\[mortal-\\S+ run ${run}\\] last words ${run}$`)),
          ),
    );
  }
  const json = await platform.spry(["logs", "mortal", "--previous", "--json", "--tail", "100"]);
  expect(json.stdout).toMatch(/"run":2,.*last words 2/);
  const pod = (
    await platform.k(`get pods ${selector} -o jsonpath={.items[0].metadata.name}`)
  ).trim();
  const previous = await platform.k(`logs ${pod} --previous`);
  expect(previous.match(/last words \d/g)).toEqual(["last words 2"]);
}, 120_000);
