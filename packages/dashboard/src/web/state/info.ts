import { signal } from "@preact/signals";
import { fitted } from "./shape.ts";
import { type Function } from "@spry/function/browser";

export interface Info {
  version: string;
  /** Origin of the gateway, where this browser reaches Functions. */
  gateway?: string;
  /** The gateway's port for exposed hosts, where it is not that of HTTPS. */
  exposedPort?: number;
  hasLinks: boolean;
  /** The command that prints a link. */
  loginCommand: string;
  /** The identity provider at which users log in. */
  provider?: string;
  /** Whether a gateway reports what it has counted. */
  hasMetrics: boolean;
  /** Whether the console reaches WebSockets. */
  hasWebSockets: boolean;
  /** Whether the registry reports what it stores. */
  hasRegistry: boolean;
}

const infoShape = {
  "version!": "text",
  gateway: "text",
  exposedPort: "number",
  "hasLinks!": "flag",
  "loginCommand!": "text",
  provider: "text",
  "hasMetrics!": "flag",
  "hasWebSockets!": "flag",
  "hasRegistry!": "flag",
} as const;

export const info = signal<Info | undefined>(undefined);

export async function loadInfo(): Promise<void> {
  const response = await fetch("/info").catch(() => undefined);
  // A proxy may answer with a page of its own.
  const value: unknown = response?.ok ? await response.json().catch(() => undefined) : undefined;
  if (value !== undefined) info.value = fitted<Info>(infoShape, value);
}

/** The URL of a Function for this browser; undefined without a gateway. */
export function urlOf({ metadata }: Pick<Function, "metadata">, tag?: string): string | undefined {
  const gateway = info.value?.gateway;
  if (!gateway) return undefined;
  if (!URL.canParse(gateway)) return undefined;
  const { protocol, port } = new URL(gateway);
  const name = tag === undefined ? metadata.name : `${tag}-${metadata.name}`;
  return `${protocol}//${name}.${metadata.namespace}.localhost${port ? `:${port}` : ""}/`;
}
