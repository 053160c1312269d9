/** A builder that has waited makes the same image as any other, of the one build that it is given. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Readable, type Writable } from "node:stream";
import { expect, test } from "vitest";
import { builderEntry } from "../index.ts";
import { given } from "../testing/build.ts";
import { temporaryDirectory } from "../testing/registry.ts";

/** As the sandbox starts it: with two descriptors, and nothing of anybody's. */
async function waitingBuilder(): Promise<ChildProcess> {
  const child = spawn(process.execPath, [builderEntry], {
    env: { SPRY_WARM_FD: "4", SPRY_READY_FD: "3", HOME: "/nobody" },
    stdio: ["ignore", "pipe", "pipe", "pipe", "pipe"],
  });
  const [said] = (await once(child.stdio[3] as Readable, "data")) as [Buffer];
  expect(said.toString()).toBe("waiting\n");
  return child;
}

async function outputOf(child: ChildProcess): Promise<{ code: number; output: string }> {
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const [code] = (await once(child, "close")) as [number];
  return { code, output };
}

test("it makes the image that a builder without waiting makes", async () => {
  const { build } = await given({ "handler.js": "exports.main = () => 1;" });
  const place = temporaryDirectory();
  const flags = {
    source: build.source,
    runtime: build.runtime,
    base: build.base,
    destination: build.destination,
    step: "push",
  };
  const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
  const made = async (name: string, start: (env: Record<string, string>) => ChildProcess) => {
    const end = join(place, name);
    writeFileSync(end, "");
    const child = start({ SPRY_ROOT: place, SPRY_TERMINATION_LOG: end, DOCKER_CONFIG: place });
    const { code, output } = await outputOf(child);
    expect({ code, output }).toMatchObject({ code: 0 });
    return readFileSync(end, "utf8");
  };
  const waiting = await waitingBuilder();
  const warm = await made("warm", (env) => {
    const line = JSON.stringify({ directory: place, env, args });
    (waiting.stdio[4] as Writable).end(`${line}\n`);
    return waiting;
  });
  const cold = await made("cold", (env) =>
    spawn(process.execPath, [builderEntry, ...args], { env }),
  );
  expect(warm).toMatch(/@sha256:[0-9a-f]{64}"}$/);
  expect(warm).toBe(cold);
});

test("one that is not needed ends without a word", async () => {
  const child = await waitingBuilder();
  const ended = outputOf(child);
  (child.stdio[4] as Writable).end();
  expect(await ended).toEqual({ code: 0, output: "" });
});
