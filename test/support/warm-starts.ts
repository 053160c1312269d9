/** A Function's ordinary start from zero, and one in a process that waited for it. */
import { expect } from "vitest";
import { untilZero } from "./on-demand.ts";
import { type Platform } from "./platform.ts";
import { untilTrue } from "./until-true.ts";

const waitMs = 60_000;

/** Of its metrics. */
export async function figure(platform: Platform, name: string): Promise<number | undefined> {
  const text = await platform.metrics();
  const value = new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1];
  return value === undefined ? undefined : Number(value);
}

const shown = (platform: Platform, name: string) =>
  platform.call(`${name}.default`).then(({ status, body }) => {
    expect({ status, body }).toMatchObject({ status: 200 });
    return JSON.parse(body) as Record<string, unknown> & { env: Record<string, string> };
  });

/** Without what is a Pod's own. */
const general = (seen: { env: Record<string, string> }) =>
  JSON.parse(
    JSON.stringify(seen.env)
      .replaceAll(seen.env["SERVER_HOST"] ?? "-", "<ip>")
      .replaceAll(seen.env["HOSTNAME"] ?? "-", "<pod>")
      .replace(/\/pods\/[0-9a-f-]{36}\//g, "/pods/<uid>/"),
  ) as unknown;

/** Its answers of an ordinary start, and of the process that waited for the next one. */
export async function coldAndWarm(platform: Platform, name: string) {
  const cold = await shown(platform, name);
  await untilZero(platform, name);
  await untilTrue(
    "a runtime that waits",
    async () => (await figure(platform, "spry_warm_processes"))! > 0,
    waitMs,
  );
  const used = await figure(platform, "spry_warm_starts_total");
  const warm = await shown(platform, name);
  expect(await figure(platform, "spry_warm_starts_total")).toBe(used! + 1);
  expect(cold["program"]).not.toContain("/warm/runtimes/");
  expect(warm["program"]).toContain("/warm/runtimes/");
  expect(general(warm)).toEqual(general(cold));
  expect(warm["cwd"]).toBe(cold["cwd"]);
  return warm;
}
