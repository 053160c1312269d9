import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { BodyTurns } from "./body-turns.ts";

const KiB = 1024;

/** A body that is here already, as far as its stream takes it. */
function body(length: number): PassThrough {
  const stream = new PassThrough({ highWaterMark: length });
  for (let left = length; left > 0; left -= 16 * KiB) stream.write(Buffer.alloc(16 * KiB));
  stream.end();
  return stream;
}

const ended = (stream: PassThrough) => new Promise((resolve) => stream.once("end", resolve));

test("a body arrives whole", async () => {
  const turns = new BodyTurns();
  const stream = body(1024 * KiB);
  let bytes = 0;
  turns.receive(stream, "alice", (chunk) => (bytes += chunk.length));
  await ended(stream);
  expect(bytes).toBe(1024 * KiB);
});

test("one user's many bodies do not keep another's waiting", async () => {
  const turns = new BodyTurns();
  let bytes = 0;
  for (let count = 0; count < 50; count++)
    turns.receive(body(1024 * KiB), "mallory", (chunk) => (bytes += chunk.length));
  const one = body(512 * KiB);
  turns.receive(one, "alice", () => {});
  await ended(one);
  // The first step of each, and a round for each of Alice's.
  expect(bytes).toBeLessThanOrEqual((50 + 8 * 4) * 64 * KiB);
});

test("between the turns of large bodies other input is looked at", async () => {
  const turns = new BodyTurns();
  let bytes = 0;
  const bodies = Array.from({ length: 20 }, () => body(512 * KiB));
  for (const each of bodies) turns.receive(each, "mallory", (chunk) => (bytes += chunk.length));
  const steps: number[] = [];
  const look = () => {
    steps.push(bytes);
    if (bytes < 20 * 512 * KiB) setImmediate(look);
  };
  setImmediate(look);
  await Promise.all(bodies.map(ended));
  const [, ...later] = steps.map((each, index) => each - (steps[index - 1] ?? 0));
  // The second round may have what is left of the first steps.
  expect(Math.max(...later.slice(1))).toBeLessThanOrEqual(4 * 64 * KiB);
});

test("a body whose client goes away while it waits gives its turn up", async () => {
  const turns = new BodyTurns();
  const gone = body(512 * KiB);
  turns.receive(gone, "mallory", () => {});
  gone.once("pause", () => gone.destroy());
  const other = body(512 * KiB);
  turns.receive(other, "mallory", () => {});
  await ended(other);
  expect(gone.destroyed).toBe(true);
});

test("of a body that is not wanted little is read, and the connection ends", async () => {
  const turns = new BodyTurns();
  const stream = body(8192 * KiB);
  turns.discard(stream, "mallory");
  await new Promise((resolve) => stream.once("close", resolve));
  expect(stream.readableLength).toBeGreaterThan(5 * 1024 * KiB);
});

test("a short body that is not wanted is read to its end", async () => {
  const turns = new BodyTurns();
  const stream = body(128 * KiB);
  turns.discard(stream, "mallory");
  await ended(stream);
  expect(stream.readableLength).toBe(0);
});

test("a body that is refused on its way stops after little more", async () => {
  const turns = new BodyTurns();
  const stream = body(8192 * KiB);
  let bytes = 0;
  turns.receive(stream, "mallory", (chunk) => {
    bytes += chunk.length;
    if (bytes === 512 * KiB) turns.discard(stream, "mallory");
  });
  await new Promise((resolve) => stream.once("close", resolve));
  expect(bytes).toBe((512 + 2048) * KiB);
});
