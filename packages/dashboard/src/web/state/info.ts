import { signal } from "@preact/signals";
import { type Function } from "@spry/function/browser";

export interface Info {
  version: string;
  /** Origin of the gateway, where this browser reaches Functions. */
  gateway: string | null;
  hasLinks: boolean;
  /** The command that prints a link. */
  loginCommand: string;
  /** The identity provider at which users log in. */
  provider: string | null;
  /** Whether a gateway reports what it has counted. */
  hasMetrics: boolean;
  /** Whether the console reaches WebSockets. */
  hasWebSockets: boolean;
  /** Whether the registry reports what it stores. */
  hasRegistry: boolean;
}

export const info = signal<Info | undefined>(undefined);

export async function loadInfo(): Promise<void> {
  const response = await fetch("/info").catch(() => undefined);
  if (response?.ok) info.value = (await response.json()) as Info;
}

/** The URL of a Function for this browser; undefined without a gateway. */
export function urlOf({ metadata }: Pick<Function, "metadata">, tag?: string): string | undefined {
  const gateway = info.value?.gateway;
  if (!gateway) return undefined;
  const { protocol, port } = new URL(gateway);
  const name = tag === undefined ? metadata.name : `${tag}-${metadata.name}`;
  return `${protocol}//${name}.${metadata.namespace}.localhost${port ? `:${port}` : ""}/`;
}
