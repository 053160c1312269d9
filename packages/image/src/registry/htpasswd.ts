import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { rename } from "node:fs/promises";

/** Of passwords that nobody could guess anyway, so that a hash need not be slow; `htpasswd -B` takes the same. */
const rounds = 5;

/** Writes a file with one user, as `htpasswd -B` does, readable by its owner alone. */
export async function writeHtpasswd(
  file: string,
  { username, password }: { username: string; password: string },
): Promise<void> {
  const { default: bcrypt } = await import("bcryptjs");
  const text = `${username}:${await bcrypt.hash(password, rounds)}\n`;
  writeFileSync(`${file}.new`, text, { mode: 0o600 });
  chmodSync(`${file}.new`, 0o600);
  await rename(`${file}.new`, file);
}

/**
 * The users of an Apache password file with bcrypt hashes: `name:$2y$…` a line. It is read again when it
 * has changed, so that a new password counts at once. Without the file nobody is let in.
 */
export class Htpasswd {
  readonly #file: string;
  #readAt = "";
  #hashes = new Map<string, string>();

  constructor(file: string) {
    this.#file = file;
  }

  /** Changes when the file does. */
  get version(): string {
    const stat = statSync(this.#file, { throwIfNoEntry: false });
    return stat ? `${stat.ino} ${stat.mtimeMs} ${stat.size}` : "";
  }

  /** The bcrypt hash of a user's password. */
  hashOf(username: string): string | undefined {
    const { version } = this;
    if (version !== this.#readAt) {
      this.#hashes = new Map(version === "" ? [] : readHashes(this.#file));
      this.#readAt = version;
    }
    return this.#hashes.get(username);
  }
}

function readHashes(file: string): [string, string][] {
  return readFileSync(file, "utf8")
    .split("\n")
    .map((line): [string, string] => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1).trim()];
    })
    .filter(([name, hash]) => name !== "" && /^\$2[aby]\$\d\d\$/.test(hash));
}
