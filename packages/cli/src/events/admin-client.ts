import { type KubeClient, messageOf, stringifyJson, transportOrigin } from "@spry/kube";
import { connect, type GlobalOptions } from "../connection.ts";
import { startCommand } from "../shown-command.ts";
import { UserError } from "../user-error.ts";

export interface AdminClient {
  /** Of the API server. */
  client: KubeClient;
  namespace: string;
  /** Throws a `UserError` with the response's message. */
  ask: <T>(method: "GET" | "POST", path: string, body?: object) => Promise<T>;
  /** The response's text, in which users' data is as it was sent. */
  askText: (method: "GET" | "POST", path: string, body?: object) => Promise<string>;
}

/**
 * On one machine the administration has an address of its own; in a cluster it is an API of the API server's (`administrationApi`
 * of the room, whose programs a command does not need).
 */
const inCluster = "/apis/eventing.spry.io";

/** The administration of events, with the credentials of the kubeconfig (docs/contributing/rooms/eventing.md). */
export async function connectAdmin(options: GlobalOptions): Promise<AdminClient> {
  const { events, client, namespace } = await connect(options);
  const base = `${transportOrigin}${events ? "" : inCluster}`;
  const askText: AdminClient["askText"] = async (method, path, body) => {
    const request = new Request(`${base}${path}`, {
      method,
      ...(body && {
        body: stringifyJson(body),
        headers: { "content-type": "application/json" },
      }),
    });
    const response = await (events ?? client.transport)(request).catch((error: unknown) => {
      if (error instanceof UserError) throw error;
      throw new UserError(
        `the administration of events cannot be reached: ${messageOf(error)}`,
        `is the platform running? \`${startCommand()}\` starts it`,
      );
    });
    const text = await response.text();
    if (response.ok) return text;
    const message = messageIn(text);
    // The API server does not know the API at all, and says so in a text.
    if (response.status === 404 && message === undefined)
      throw new UserError(
        "this cluster has no administration of events",
        "an installation with eventing.enabled has it",
      );
    throw new UserError(
      message ?? `the administration of events answered ${response.status}`,
      message?.startsWith("Subscription ") ? "`spry events list` lists them" : undefined,
    );
  };
  return {
    client,
    namespace,
    askText,
    async ask<T>(...request: Parameters<AdminClient["askText"]>): Promise<T> {
      const text = await askText(...request);
      return (text === "" ? undefined : JSON.parse(text)) as T;
    },
  };
}

function messageIn(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { message?: string }).message;
  } catch {
    return undefined;
  }
}
