import { type Clock, type Logger } from "@spry/kube";

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
  /** How many processes may wait for Pods, where the sandbox can; 0, the default: none. */
  warm?: number | undefined;
  clock?: Clock;
  log?: Logger;
}
