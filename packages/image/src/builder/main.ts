/**
 * The builder's program: it runs in the build Job's Pod, in one container or, a step each, in three. Ends with 0
 * when its part is done, with 1 when the Function's author must change something, with 2 when another try may do better. The
 * termination message is the image's name, or what went wrong.
 */
import { writeFileSync } from "node:fs";
import { readFlags } from "./flags.ts";
import { readHandover } from "./handover.ts";
import { type runStep } from "./step.ts";
import { messageOf, UserError } from "./user-error.ts";

/** Kubernetes cuts longer ones. */
const terminationMessageLimit = 4096;

async function main(): Promise<void> {
  process.exitCode = await build();
}

async function build(): Promise<number> {
  try {
    const flags = readFlags();
    const before =
      flags.step === undefined ? undefined : readHandover(flags.handover, flags.scratch);
    const image = before && "image" in before ? before.image : await run(flags, before);
    if (image === undefined) return 0;
    console.log(`pushed ${image}`);
    writeTerminationMessage(JSON.stringify({ image }));
    return 0;
  } catch (error) {
    const message = messageOf(error);
    console.log(message);
    writeTerminationMessage(message);
    return error instanceof UserError ? 1 : 2;
  }
}

/** All that builds is loaded only where there is something left to do. */
const run: typeof runStep = async (...given) => (await import("./step.ts")).runStep(...given);

/** By itself on a cluster; the process sandbox says where the file is. */
function writeTerminationMessage(message: string): void {
  const file = process.env["SPRY_TERMINATION_LOG"] ?? "/dev/termination-log";
  try {
    writeFileSync(file, message.slice(-terminationMessageLimit));
  } catch (error) {
    console.log(`writing the termination message: ${messageOf(error)}`);
  }
}

void main();
