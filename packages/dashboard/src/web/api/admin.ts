/** The administration of events (docs/contributing/rooms/eventing.md#administration), as the user. */
import { asUser } from "./client.ts";

/** With `body` a POST. Rejects with the server's own message. */
export async function adminJson<T>(path: string, body?: object): Promise<T> {
  const response = await asUser(path, {
    ...(body && {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "content-type": "application/json" },
    }),
  });
  const text = await response.text();
  const value = parsed(text) as (T & { message?: string }) | undefined;
  if (response.ok && value !== undefined) return value;
  // An API server that does not have it says so in a text.
  if (response.status === 404 && value === undefined)
    throw new Error("this cluster has no administration of events");
  throw new Error(value?.message ?? `the server responded with ${response.status}`);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text || "{}");
  } catch {
    return undefined;
  }
}
