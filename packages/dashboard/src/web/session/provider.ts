/** Logins at an identity provider (server/oidc.ts): the page leaves for it, and is sent back with a code. */
import { navigate } from "../router.ts";
import { store, stored } from "../state/tab-storage.ts";
import { type StoredLogin } from "./stored-login.ts";

/** Where a login begins without a click, and where the provider sends the browser. */
export const placesOfLogin = { begin: "/login/oidc", callback: "/login/callback" };

/** What is kept while the user is at the provider. */
interface Attempt {
  state: string;
  verifier: string;
  nonce: string;
  /** Where the user was. */
  at: string;
}

const attemptShape = {
  "state!": "text",
  "verifier!": "text",
  "nonce!": "text",
  "at!": "text",
} as const;
const storageKey = "login-attempt";

export async function beginAtProvider(): Promise<void> {
  const { url, ...rest } = await post<Omit<Attempt, "at"> & { url: string }>("begin", {});
  const here = location.pathname + location.search;
  const at = Object.values(placesOfLogin).includes(location.pathname) ? "/" : here;
  if (!store(storageKey, { ...rest, at } satisfies Attempt))
    throw new Error("this browser stores nothing for this page, which a login needs");
  location.assign(url);
}

/** With what the address has; throws for the user why there is no login. */
export async function finishAtProvider(): Promise<StoredLogin> {
  const query = new URLSearchParams(location.search);
  const attempt = stored<Attempt>(storageKey, attemptShape);
  store(storageKey, undefined);
  // The code must not stay in the history.
  navigate(attempt?.at ?? "/", { replace: true });
  if (!attempt || query.get("state") !== attempt.state)
    throw new Error("this login was not begun in this tab: log in again");
  const { verifier, nonce } = attempt;
  const code = query.get("code");
  if (code !== null) return post<StoredLogin>("finish", { code, verifier, nonce });
  const reason = query.get("error_description") ?? query.get("error") ?? "no code";
  throw new Error(`the identity provider refused the login: ${reason}`);
}

/** Undefined where that is not possible now: the login then ends with its token. */
export const renewAtProvider = (refresh: string): Promise<StoredLogin | undefined> =>
  post<StoredLogin>("renew", { refresh }).catch(() => undefined);

async function post<T>(what: string, body: object): Promise<T> {
  const init = { method: "POST", body: JSON.stringify(body) };
  const response = await fetch(`/login/oidc/${what}`, init).catch(() => undefined);
  if (!response) throw new Error("the dashboard's server cannot be reached");
  const answer = (await response.json()) as T & { message?: string };
  if (!response.ok) throw new Error(answer.message ?? `the server responded ${response.status}`);
  return answer;
}
