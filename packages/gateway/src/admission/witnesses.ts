import { type Socket } from "node:net";
import { type Clock, type Logger } from "@spry/kube";
import { type Entry, type Line, lineSplitter, parseAck } from "./ledger.ts";

export interface WitnessesDeps {
  clock: Clock;
  log: Logger;
  /** Everything that is under way, for one that has just come. */
  underWay: () => Iterable<Entry>;
  /** Writes down which witnesses know of everything; false when that is not this gateway's to write any more. */
  record: (identities: readonly string[]) => Promise<boolean>;
  /** Whether this gateway admits. */
  isHeld: () => boolean;
}

const aliveMs = 1_000;
/** One that is silent for so long does without. */
const ackMs = 2_000;
const recordAgainMs = 500;
const maxWitnesses = 16;

interface Witness {
  identity: string;
  socket: Socket;
  acked: number;
  /** It knows of everything that is under way, and that has been written down. */
  isRecorded: boolean;
  isGone: boolean;
}

interface Pending {
  seq: number;
  resolve: (isCleared: boolean) => void;
  cancel: () => void;
}

/**
 * The other gateways, as the one that admits sees them. Each hears of a request before that is sent to a Pod, so that it can succeed this
 * gateway and know what is under way. One that is gone has to be struck off the record before anything else is sent: it might
 * succeed without knowing.
 */
export class Witnesses {
  readonly #deps: WitnessesDeps;
  readonly #all = new Set<Witness>();
  #pending: Pending[] = [];
  #seq = 0;
  #recording: Promise<void> = Promise.resolve();
  #cancelAlive = () => {};

  constructor(deps: WitnessesDeps) {
    this.#deps = deps;
  }

  get identities(): string[] {
    return [...this.#all].filter((each) => !each.isGone).map(({ identity }) => identity);
  }

  /** A gateway listens from now on. */
  add(identity: string, socket: Socket): void {
    if (this.#all.size >= maxWitnesses) return void socket.destroy();
    const witness = { identity, socket, acked: -1, isRecorded: false, isGone: false };
    this.#all.add(witness);
    const split = lineSplitter((text) => this.#acked(witness, parseAck(text)));
    socket.setNoDelay(true);
    socket.on("data", (chunk: Buffer) => {
      try {
        split(chunk);
      } catch {
        socket.destroy();
      }
    });
    socket.on("error", () => socket.destroy());
    socket.once("close", () => this.#gone(witness));
    for (const entry of this.#deps.underWay()) say(witness, { begin: entry, seq: this.#seq });
    say(witness, { all: this.#seq });
    if (this.#all.size === 1) this.#keepAlive();
  }

  /** This gateway admits again: those of the last time do not know what it has inherited since. They connect again. */
  restart(): void {
    for (const witness of this.#all) {
      witness.isGone = true;
      witness.socket.destroy();
    }
    this.#all.clear();
  }

  /** Resolves with true once every witness knows of it; undefined when there is none. */
  begin(entry: Entry): Promise<boolean> | undefined {
    if (this.#all.size === 0) return undefined;
    const seq = ++this.#seq;
    for (const witness of this.#all) say(witness, { begin: entry, seq });
    return new Promise((resolve) => {
      const cancel = this.#deps.clock.after(ackMs, () => this.#dropSilent(seq));
      this.#pending.push({ seq, resolve, cancel });
    });
  }

  end(id: string): void {
    for (const witness of this.#all) say(witness, { end: id });
  }

  /** Nothing more may be sent: another gateway may admit from now on. */
  refuseAll(): void {
    for (const { resolve, cancel } of this.#pending.splice(0)) {
      cancel();
      resolve(false);
    }
  }

  close(): void {
    this.#cancelAlive();
    this.refuseAll();
    for (const { socket } of this.#all) socket.destroy();
  }

  #acked(witness: Witness, seq: number | undefined): void {
    if (seq === undefined || witness.isGone) return;
    const isFirst = witness.acked < 0;
    witness.acked = Math.max(witness.acked, seq);
    if (isFirst) void this.#record();
    this.#settle();
  }

  #gone(witness: Witness): void {
    if (witness.isGone) return;
    witness.isGone = true;
    void this.#record();
  }

  /** One after the other; each writes what is true when it begins. */
  #record(): Promise<void> {
    const before = this.#recording;
    return (this.#recording = (async () => {
      await before;
      await this.#recordOnce();
    })());
  }

  async #recordOnce(): Promise<void> {
    const known = [...this.#all].filter(({ acked, isGone }) => acked >= 0 && !isGone);
    const gone = [...this.#all].filter(({ isGone }) => isGone);
    const hasChanged =
      gone.some(({ isRecorded }) => isRecorded) || known.some(({ isRecorded }) => !isRecorded);
    if (hasChanged && !(await this.#deps.record(known.map(({ identity }) => identity)))) {
      // The record may name one that is gone, so that nothing may be sent until it is written.
      this.refuseAll();
      if (this.#deps.isHeld()) this.#deps.clock.after(recordAgainMs, () => void this.#record());
      return;
    }
    for (const witness of known) witness.isRecorded = true;
    for (const witness of gone) this.#all.delete(witness);
    this.#settle();
  }

  #settle(): void {
    let known = Infinity;
    for (const { acked } of this.#all) known = Math.min(known, acked);
    for (let first = this.#pending[0]; first && first.seq <= known; first = this.#pending[0]) {
      this.#pending.shift();
      first.cancel();
      first.resolve(true);
    }
  }

  #dropSilent(seq: number): void {
    for (const witness of this.#all) {
      if (witness.acked >= seq || witness.isGone) continue;
      this.#deps.log.warn(
        { gateway: witness.identity },
        "a gateway does not respond, continuing without it",
      );
      witness.socket.destroy();
    }
  }

  #keepAlive(): void {
    this.#cancelAlive();
    this.#cancelAlive = this.#deps.clock.after(aliveMs, () => {
      for (const witness of this.#all) say(witness, { alive: true });
      if (this.#all.size > 0) this.#keepAlive();
    });
  }
}

function say({ socket, isGone }: Witness, line: Line): void {
  if (!isGone && socket.writable) socket.write(`${JSON.stringify(line)}\n`);
}
