import { type Logger, messageOf } from "@spry/kube";
import { openOciSandbox, processSandbox, type Sandbox } from "@spry/machine";
import { type SandboxKind } from "../sandbox-kinds.ts";
import { UserError } from "../user-error.ts";

export interface SandboxSettings {
  dataDir: string;
  npmCli: string;
  npmConfig: string;
  pipConfig: string;
  log: Logger;
}

/** How Pods run on this machine: as it was asked for, or (`auto`) in containers where they can be had. */
export async function openSandbox(kind: SandboxKind, settings: SandboxSettings): Promise<Sandbox> {
  if (kind === "process") return processSandbox(settings);
  try {
    return await openOciSandbox(settings);
  } catch (error) {
    const why = messageOf(error);
    if (kind === "oci")
      throw new UserError(
        `containers cannot be run here: ${why}`,
        "run as root on Linux with runc installed, or use --sandbox process",
      );
    settings.log.info({ why }, "using the process sandbox");
    return processSandbox(settings);
  }
}
