import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { framesAtSource, leaveFrames } from "./source-map.ts";

/** How much of a file's end is looked at. */
const tailBytes = 4096;

/**
 * Lets `error.stack` name the places that the author knows, for code that says where its source map is: what the Function makes of
 * a stack itself, a response or a line of its own logger, has them, too. Other code keeps Node.js' own stacks, which cost less.
 */
export function mapStacksOf(file: string): void {
  // Then Node.js does it.
  if (process.sourceMapsEnabled) return leaveFrames(() => true);
  if (!isNodes() || !endsWithMap(file)) return;
  Error.prepareStackTrace = mappedStack;
  // Unless the Function has its own way of writing stacks.
  leaveFrames(() => Error.prepareStackTrace === mappedStack);
}

/** Something that was required before may have its own. */
const isNodes = (): boolean =>
  Error.prepareStackTrace === undefined ||
  Error.prepareStackTrace.name === "ErrorPrepareStackTrace";

function mappedStack(error: Error, frames: NodeJS.CallSite[]): string {
  const head = headOf(error);
  return frames.length === 0
    ? head
    : `${head}${framesAtSource(`\n    at ${frames.join("\n    at ")}`)}`;
}

function headOf(error: Error): string {
  try {
    return Error.prototype.toString.call(error);
  } catch {
    return "Error";
  }
}

/** Or with a line that is longer than what is looked at, as inline maps are. */
function endsWithMap(file: string): boolean {
  const descriptor = openSync(file, "r");
  try {
    const { size } = fstatSync(descriptor);
    const buffer = Buffer.allocUnsafe(Math.min(size, tailBytes));
    readSync(descriptor, buffer, 0, buffer.length, size - buffer.length);
    const tail = buffer.toString("latin1").trimEnd();
    return tail.includes("# sourceMappingURL=") || (size > tailBytes && !tail.includes("\n"));
  } finally {
    closeSync(descriptor);
  }
}
