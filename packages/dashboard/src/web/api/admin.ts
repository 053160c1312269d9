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
  const value = (text ? JSON.parse(text) : {}) as T & { message?: string };
  if (!response.ok)
    throw new Error(value.message ?? `the server responded with ${response.status}`);
  return value;
}
