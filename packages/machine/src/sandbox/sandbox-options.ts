import { type Clock, type Logger } from "@spry/kube";
import { type IsShipped } from "./warm/runtime-copy.ts";

/** Runtimes that wait for a Function, outside of any Pod. */
export interface WarmOptions {
  /** How many, all together. */
  max: number;
  /** Only what the platform has made itself may wait. */
  isShipped: IsShipped;
}

/** What every kind of sandbox works with. */
export interface SandboxOptions {
  /** The node's data directory. */
  dataDir: string;
  /** npm's `npm-cli.js`, for images that want npm or another major of Node.js. */
  npmCli?: string | undefined;
  /** An npmrc with this machine's way to its package registry, used as npm's global configuration. */
  npmConfig?: string | undefined;
  /** The same for pip. */
  pipConfig?: string | undefined;
  /** Which processes may wait for Pods, where the sandbox can; by default none. */
  warm?: WarmOptions | undefined;
  clock?: Clock;
  log?: Logger;
}
