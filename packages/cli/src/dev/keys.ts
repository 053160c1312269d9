/** The keys of `spry dev`: most act on one Function, which a digit chooses where several run. */
import { type EndSignal } from "../interruption.ts";
import { openBrowser } from "../open-browser.ts";
import { type DevFunction } from "./dev-function.ts";
import { eventFile } from "./events.ts";
import { type DevOutput } from "./output.ts";

const maxDigit = 9;

/** Which Function the keys, and SIGUSR2, act on. */
export class Chosen {
  readonly #all: readonly DevFunction[];
  readonly #output: DevOutput;
  #index = 0;

  constructor(all: readonly DevFunction[], output: DevOutput) {
    this.#all = all;
    this.#output = output;
  }

  get function(): DevFunction | undefined {
    return this.#all[this.#index];
  }

  /** By its place in the list, from 1. */
  choose(place: number): void {
    const found = this.#all[place - 1];
    if (!found || this.#all.length === 1) return;
    this.#index = place - 1;
    this.#output.note(`the keys o, e and c now act on ${found.name}`);
  }

  get help(): string {
    const one = "o open, e emit an event, c run a cron, l clear";
    if (this.#all.length === 1) return `keys: ${one}, r restart, q quit`;
    const digits = `1-${Math.min(this.#all.length, maxDigit)} choose a Function (now ${this.function?.name})`;
    return `keys: ${digits}, ${one}, r restart all, q quit`;
  }
}

/** Until a key ends it; the keys are listened to as long as this process runs. `hasKeys`: false for programs. */
export async function untilQuit(
  all: readonly DevFunction[],
  { chosen, output, hasKeys }: { chosen: Chosen; output: DevOutput; hasKeys: boolean },
): Promise<EndSignal | undefined> {
  if (hasKeys && process.stdin.isTTY) output.note(chosen.help);
  else if (hasKeys) output.note(`Ctrl-C ends it; SIGUSR2 sends the event of ${eventFile}`);
  return new Promise((resolve) => {
    if (!hasKeys) return;
    const help = () => output.note(chosen.help);
    const digits = Array.from({ length: maxDigit }, (_, index) => [
      String(index + 1),
      () => chosen.choose(index + 1),
    ]);
    const release = listenToKeys({
      ...(Object.fromEntries(digits) as Record<string, () => void>),
      o: () => open(chosen.function?.url ?? "", output),
      e: () => void chosen.function?.sendExample(),
      c: () => void chosen.function?.callOnSchedule(),
      l: () => output.clear(),
      r: () => all.forEach((each) => each.restart()),
      h: help,
      "?": help,
      q: () => resolve(undefined),
      interrupt: () => resolve("SIGINT"),
    });
    process.on("exit", release);
  });
}

function open(url: string, output: DevOutput): void {
  openBrowser(url, () => output.note(`a browser could not be started: open ${url}`));
}

/** Calls an action for each key on a terminal; returns what gives the terminal back. `interrupt` is for Ctrl-C. */
export function listenToKeys(actions: Record<string, () => void>): () => void {
  const { stdin } = process;
  if (!stdin.isTTY) return () => {};
  stdin.setRawMode(true);
  stdin.resume();
  const onData = (chunk: Buffer) => {
    for (const key of chunk.toString()) {
      const name = key === "\u0003" ? "interrupt" : key === "\u0004" ? "q" : key.toLowerCase();
      if (Object.hasOwn(actions, name)) actions[name]?.();
    }
  };
  stdin.on("data", onData);
  return () => {
    stdin.off("data", onData);
    stdin.setRawMode(false);
    stdin.pause();
  };
}
