/** A process that writes to a store without pause, and what has to be there when it has ended without a word. */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { endChild, hasEnded } from "@spry/test-kit";
import { type Store } from "../store.ts";

const collection = "/things";
const namespace = "ns";
const names = 40;

/**
 * Eight writers create, change and delete objects as a seeded generator says, without pause. `?` announces a write,
 * `!` says that it was acknowledged: a name, and the value it has then (`-`: deleted).
 */
const writer = `
  const { writeSync } = await import("node:fs");
  const { Store } = await import(process.argv[1]);
  const store = new Store(process.argv[2]);
  let seed = Number(process.argv[3]);
  const random = (n) => ((seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) >>> 8) % n;
  let value = seed * 1000;
  // To a file and at once: a pipe that is full keeps in the process what a kill then takes away.
  const say = (text) => writeSync(1, text + "\\n");
  const write = async (writer) => {
    for (;;) {
      // Each writer has names of its own, so that the order of its announcements is that of its writes.
      const name = "o" + (random(${names / 8}) * 8 + writer);
      const previous = store.get({ collection: "${collection}", namespace: "${namespace}", name });
      if (previous && random(4) === 0) {
        say("? " + name + " -");
        await store.remove(previous);
        say("! " + name + " -");
      } else {
        const next = ++value;
        say("? " + name + " " + next);
        const object = { metadata: { name }, value: next, pad: "x".repeat(random(6000)) };
        await store.put({ collection: "${collection}", namespace: "${namespace}", name }, previous, object);
        say("! " + name + " " + next);
      }
    }
  };
  // When the test has ended before it was killed.
  setTimeout(() => process.exit(1), 60_000);
  await Promise.all(Array.from({ length: 8 }, (_, writer) => write(writer)));
`;

/** Per name, the values that it may have: the last one acknowledged, and one announced after it. */
export class Expected {
  readonly #possible = new Map<string, Set<string>>();
  acknowledged = 0;

  /** What a writer has said. What follows its last line end is not whole: it was killed then. */
  hear(said: string): void {
    for (const line of said.split("\n").slice(0, -1)) {
      const [mark = "", name = "", value = ""] = line.split(" ");
      if (mark === "?") this.#of(name).add(value);
      else {
        this.#possible.set(name, new Set([value]));
        this.acknowledged++;
      }
    }
  }

  /** What is there instead of what should be. */
  differences(store: Store): string[] {
    return [...this.#possible].flatMap(([name, possible]) => {
      const stored = store.get({ collection, namespace, name });
      const found = stored ? String(stored.object["value"]) : "-";
      return possible.has(found) ? [] : [`${name} is ${found}, not ${[...possible].join(" or ")}`];
    });
  }

  settle(store: Store): void {
    for (const name of this.#possible.keys()) {
      const stored = store.get({ collection, namespace, name });
      this.#possible.set(name, new Set([stored ? String(stored.object["value"]) : "-"]));
    }
  }

  #of(name: string): Set<string> {
    const known = this.#possible.get(name) ?? new Set(["-"]);
    this.#possible.set(name, known);
    return known;
  }
}

/** Runs the writer with its output in a file; resolves, while it goes on, once so many writes are acknowledged there. */
export async function writing(
  dataDir: string,
  options: { seed: number; log: string; writes: number },
): Promise<ChildProcess> {
  const { seed, log, writes } = options;
  const module = path.join(import.meta.dirname, "../store.ts");
  const args = ["--input-type=module", "-e", writer, module, dataDir, String(seed)];
  const output = openSync(log, "w");
  const child = spawn(process.execPath, args, { stdio: ["ignore", output, "inherit"] });
  closeSync(output);
  while (readFileSync(log, "utf8").split("!").length <= writes) {
    if (hasEnded(child))
      throw new Error(`the writer ended with ${child.exitCode ?? child.signalCode}`);
    await pause(1);
  }
  return child;
}

/** Without a word; resolves when it has ended. */
export async function killed(child: ChildProcess): Promise<void> {
  await endChild(child);
}
