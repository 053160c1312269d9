/** The administration of events (docs/contributing/rooms/eventing.md#administration), as the user. */
import { asUser } from "./client.ts";

/** With `body` a POST. Rejects with the server's own message. */
export async function adminJson<T>(path: string, body?: object): Promise<T> {
  return (await adminAnswer(path, body)).value as T;
}

/** The same, with the text of the answer, in which users' data is as it was sent. */
export async function adminAnswer(
  path: string,
  body?: object,
): Promise<{ value: object; text: string }> {
  const response = await asUser(path, {
    ...(body && {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "content-type": "application/json" },
    }),
  });
  const text = await response.text();
  const value = parsed(text) as { message?: string } | undefined;
  if (response.ok && value !== undefined) return { value, text };
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
