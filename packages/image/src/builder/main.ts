/**
 * The builder's program: it runs in the build Job's Pod, in one container or, a step each, in three, where
 * `stepScript` starts it. Ends with 0
 * when its part is done, with 1 when the Function's author must change something, with 2 when another try may do better. The
 * termination message is the image's name, or what went wrong.
 */
import { writeFileSync } from "node:fs";
import { buildExitCodes, builtMessage } from "@spry/function";
import { readFlags } from "./flags.ts";
import { readHandover, writeMade } from "./handover.ts";
import { fetchedSource, runStep } from "./step.ts";
import { messageOf, UserError } from "./user-error.ts";
import { becomeBuild } from "./wait-for-build.ts";

/** Kubernetes cuts longer ones. */
const terminationMessageLimit = 4096;

async function main(): Promise<void> {
  if ((await becomeBuild()) === "none") return;
  process.exitCode = await build();
}

async function build(): Promise<number> {
  try {
    const flags = readFlags();
    const before =
      flags.step === undefined ? undefined : readHandover(flags.handover, flags.scratch);
    const image = await runStep(flags, before);
    if (image === undefined) return buildExitCodes.done;
    console.log(`pushed ${image}`);
    const message = builtMessage(image, fetchedSource(flags.handover).leftOut);
    if (flags.step === "fetch") writeMade(flags.handover, message);
    writeTerminationMessage(message);
    return buildExitCodes.done;
  } catch (error) {
    const message = messageOf(error);
    console.log(message);
    writeTerminationMessage(message);
    return error instanceof UserError ? buildExitCodes.refused : buildExitCodes.failed;
  }
}

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
