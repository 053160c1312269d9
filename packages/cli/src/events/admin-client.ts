import { messageOf, transportOrigin } from "@spry/kube";
import { connect, type GlobalOptions } from "../connection.ts";
import { startCommand } from "../shown-command.ts";
import { UserError } from "../user-error.ts";

export interface AdminClient {
  namespace: string;
  /** Throws a `UserError` with the response's message. */
  ask: <T>(method: "GET" | "POST", path: string, body?: object) => Promise<T>;
}

/** The administration of events, with the credentials of the kubeconfig (docs/contributing/rooms/eventing.md). */
export async function connectAdmin(options: GlobalOptions): Promise<AdminClient> {
  const { events, namespace } = await connect(options);
  if (!events)
    throw new UserError(
      "this cluster's administration of events cannot be reached from here",
      `use the kubeconfig that \`${startCommand()}\` has written`,
    );
  return {
    namespace,
    async ask<T>(method: "GET" | "POST", path: string, body?: object): Promise<T> {
      const request = new Request(`${transportOrigin}${path}`, {
        method,
        ...(body && {
          body: JSON.stringify(body),
          headers: { "content-type": "application/json" },
        }),
      });
      const response = await events(request).catch((error: unknown) => {
        throw new UserError(
          `the administration of events cannot be reached: ${messageOf(error)}`,
          `is the platform running? \`${startCommand()}\` starts it`,
        );
      });
      const text = await response.text();
      if (response.ok) return (text === "" ? undefined : JSON.parse(text)) as T;
      throw new UserError(
        messageIn(text) ?? `the administration of events answered ${response.status}`,
      );
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
