/**
 * Whether the code has asked for `PORT`. In an image the variable has a value, by which a server that asked for it is known; on a
 * developer's machine it has none, and the server listens on the port that the code names instead.
 */
export class PortReads {
  /** The variable's value, where it has one. */
  readonly given = process.env["PORT"] ? Number(process.env["PORT"]) : undefined;
  seen = false;
  readonly #env: NodeJS.ProcessEnv | undefined;

  constructor() {
    if (process.env["PORT"] !== undefined) return;
    const env = process.env;
    this.#env = env;
    process.env = new Proxy(env, {
      get: (target, name: string) => {
        if (name === "PORT") this.seen = true;
        return target[name];
      },
      // Variables have no descriptors but the usual one.
      set: (target, name: string, value: string) => {
        target[name] = value;
        return true;
      },
    });
  }

  stop(): void {
    if (this.#env) process.env = this.#env;
  }
}
