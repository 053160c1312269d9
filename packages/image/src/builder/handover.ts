import { lstatSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { type Fetched } from "./function-build.ts";

/** How far a step of a build got, for the next. */
export interface Handover {
  /** With what has been fetched. */
  directory: string;
  fetched: Fetched;
}

/** In the volume of handovers once there is nothing left to do: the termination message of the whole build, as a line. */
export const madeFile = "made.json";

const fileIn = (directory: string) => join(directory, "handover.json");

/** Writes to a volume that the step with foreign code can only read: it names for the last step what to push. */
export function writeHandover(directory: string, handover: Handover): void {
  writeFileSync(fileIn(directory), JSON.stringify(handover));
}

/** Leaves word for the steps to come that the image is pushed. */
export function writeMade(directory: string, message: string): void {
  writeFileSync(join(directory, madeFile), `${message}\n`);
}

/** Undefined when there was no step before. `shared` is the volume with the build's directory, wherever that is mounted. */
export function readHandover(directory: string, shared: string): Handover | undefined {
  let text: string;
  try {
    text = readFileSync(fileIn(directory), "utf8");
  } catch {
    return undefined;
  }
  const handover = JSON.parse(text) as Handover;
  const found = join(shared, basename(handover.directory));
  if (!lstatSync(found).isDirectory())
    throw new Error(`${found} is no longer a directory: a script has replaced it`);
  return { ...handover, directory: found };
}
