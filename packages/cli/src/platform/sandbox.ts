import { type Logger, messageOf } from "@spry/kube";
import {
  openOciSandbox,
  openProcessSandbox,
  type Sandbox,
  TrialFailed,
  type WarmOptions,
} from "@spry/machine";
import { type SandboxKind } from "../sandbox-kinds.ts";
import { UserError } from "../user-error.ts";

export interface SandboxSettings {
  dataDir: string;
  npmCli: string;
  npmConfig: string;
  pipConfig: string;
  warm: WarmOptions;
  log: Logger;
}

/** A sandbox, and one sentence about the choice for the user. */
export interface ChosenSandbox {
  sandbox: Sandbox;
  sentence: string;
}

/** How Pods run on this machine: as it was asked for, or (`auto`) in the strongest way that works here. Each is tried. */
export async function openSandbox(
  kind: SandboxKind,
  settings: SandboxSettings,
): Promise<ChosenSandbox> {
  if (kind === "process") return chosen(await openProcess(settings), "");
  try {
    // Chosen by itself, a sandbox keeps what the other one keeps, too.
    return chosen(await openOciSandbox({ ...settings, needsNetwork: kind === "auto" }), "");
  } catch (error) {
    const why = messageOf(error);
    if (kind === "oci")
      throw new UserError(
        `containers cannot be run here: ${why}`,
        "run as root on Linux with the packages runc (or crun), nftables and iproute2, or use --sandbox process",
      );
    settings.log.info({ why }, "using the process sandbox");
    return chosen(await openProcess(settings), `the stronger sandbox, oci, cannot be used: ${why}`);
  }
}

async function openProcess(settings: SandboxSettings): Promise<Sandbox> {
  try {
    return await openProcessSandbox(settings);
  } catch (error) {
    if (!(error instanceof TrialFailed)) throw error;
    throw new UserError(error.message, error.wayOut, { cause: error });
  }
}

function chosen(sandbox: Sandbox, whyNotStronger: string): ChosenSandbox {
  const more = whyNotStronger === "" ? "" : ` (${whyNotStronger})`;
  return { sandbox, sentence: `${sandbox.name}: ${sandbox.isolation}${more}` };
}
