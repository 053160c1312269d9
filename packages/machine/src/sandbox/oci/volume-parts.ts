import { mkdirSync, realpathSync, writeFileSync } from "node:fs";
import path from "node:path";
import { LeadsOut, openBeneath, type OpenPlace } from "../open-beneath.ts";

interface Part {
  held: OpenPlace;
  /** Where the runtime finds it. */
  target: string;
}

/** The reason why a container could not be started, as a runtime's log has it; the next attempt may succeed. */
const exchanged = JSON.stringify({
  level: "error",
  msg: "a part of a volume (subPath) could not be mounted: another container has replaced or removed it",
});

/**
 * Runs before the runtime, in a mount namespace of the two, so that the machine's own has none of these mounts: binds each
 * part by its name, and then looks whether it is the one that this program holds open. A mount can no more be exchanged.
 */
const bindParts = `
errors=$1; shift
while [ "$1" != -- ]; do
  mount -n --bind "$1" "$2" && [ "$2" -ef "$3" ] || { echo '${exchanged}' > "$errors"; exit 125; }
  shift 3
done
shift
exec "$@"`;

/**
 * The parts of volumes (`subPath`) that a container mounts. Other containers of the Pod may write to the volume and
 * exchange the part, or a directory above it, for a link until the very moment of the mount; a runtime would follow it
 * on the machine. So the runtime gets names that only the platform can change. The kernel does not permit mounting
 * what was opened in another mount namespace: descriptors alone, as the kubelet has them, do not do.
 */
export class VolumeParts {
  readonly #podDir: string;
  readonly #dir: string;
  readonly #parts: Part[] = [];

  constructor(podDir: string, bundle: string) {
    this.#podDir = podDir;
    this.#dir = path.join(bundle, "parts");
  }

  /**
   * Where the runtime finds what is to be mounted: a file or directory below the Pod's. Throws for what leads elsewhere.
   */
  sourceOf(source: string): string {
    const [top = "", , ...below] = path.relative(this.#podDir, source).split("/");
    const held = this.#open(source);
    if (top !== "volumes" || below.length === 0) {
      // Only the platform gives names there.
      held.close();
      return realpathSync(source);
    }
    const target = path.join(this.#dir, String(this.#parts.length));
    mkdirSync(held.isDirectory ? target : this.#dir, { recursive: true, mode: 0o700 });
    if (!held.isDirectory) writeFileSync(target, "");
    this.#parts.push({ held, target });
    return target;
  }

  #open(source: string): OpenPlace {
    try {
      return openBeneath(this.#podDir, source);
    } catch (error) {
      if (!(error instanceof LeadsOut)) throw error;
      const name = path.relative(this.#podDir, source);
      throw new Error(`mounting ${name}: its path leads outside the Pod (${error.message})`, {
        cause: error,
      });
    }
  }

  get isEmpty(): boolean {
    return this.#parts.length === 0;
  }

  /** The runtime's command, with what has to be done before it. What goes wrong then is written to `errorFile`. */
  command(runtime: readonly string[], errorFile: string): string[] {
    if (this.isEmpty) return [...runtime];
    const places = this.#parts.flatMap(({ held, target }) => [held.name, target, held.path]);
    const own = [
      "unshare",
      "--mount",
      "--propagation",
      "slave",
      "/bin/sh",
      "-c",
      bindParts,
      "sh",
      errorFile,
    ];
    return [...own, ...places, "--", ...runtime];
  }

  /** When the container has been started, or will not be. */
  close(): void {
    for (const { held } of this.#parts.splice(0)) held.close();
  }
}
