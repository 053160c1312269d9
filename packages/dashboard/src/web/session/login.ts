/** Who is logged in. The token is in this tab's session storage: it is in no cookie, and in no URL that is sent to a server. */
import { computed, signal } from "@preact/signals";

interface Stored {
  token: string;
  /** Milliseconds since 1970; absent for a token of the API server, whose expiry is not known. */
  expires?: number;
}

const storageKey = "spry.login";
const channelName = "spry.login";
/** How long a new tab waits for the login of another tab of this origin. */
const handOverMs = 150;
const renewAheadMs = 60 * 60 * 1000;

const stored = signal<Stored | undefined>(undefined);
/** For the user: why the login failed or has ended. */
export const loginProblem = signal("");
export const isLoggedIn = computed(() => stored.value !== undefined);
export const currentToken = (): string => stored.value?.token ?? "";

const channel = new BroadcastChannel(channelName);
channel.addEventListener("message", ({ data }: MessageEvent<{ ask?: boolean }>) => {
  // oxlint-disable-next-line require-post-message-target-origin -- a channel, not a window
  if (data.ask && stored.value) channel.postMessage({ login: stored.value });
});

/** Logs in with the code in the address, with the login that this tab has stored, or with that of another tab, in this order. */
export async function resumeLogin(): Promise<void> {
  const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1];
  if (code !== undefined) {
    // It must not stay in the history.
    history.replaceState(null, "", location.pathname + location.search);
    if (await redeem(code)) return;
  }
  const kept = readStored() ?? (await fromOtherTab());
  if (kept) {
    keep(kept);
    loginProblem.value = "";
  }
}

async function redeem(code: string): Promise<boolean> {
  try {
    const response = await fetch("/login/redeem", {
      method: "POST",
      body: JSON.stringify({ code }),
    });
    const answer = (await response.json()) as Stored & { message?: string };
    if (!response.ok) {
      loginProblem.value = answer.message ?? "this link does not work";
      return false;
    }
    keep(answer);
    return true;
  } catch {
    loginProblem.value = "the dashboard's server cannot be reached";
    return false;
  }
}

/** Logs in with a token of the API server; resolves with what is wrong with it, if anything. */
export async function logInWith(token: string): Promise<string | undefined> {
  const response = await fetch("/k8s/apis/authentication.k8s.io/v1/selfsubjectreviews", {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" }),
  });
  if (response.status === 401) return "the cluster does not accept this token";
  if (!response.ok) return `the cluster responded with ${response.status}`;
  keep({ token });
  loginProblem.value = "";
  return undefined;
}

/** The server has refused the token: what the user has typed stays where it is until the next login. */
export function loginEnded(): void {
  if (!stored.value) return;
  loginProblem.value = "your login has expired";
  forget();
}

export function logOut(): void {
  loginProblem.value = "";
  forget();
}

function keep(login: Stored): void {
  const { token, expires } = login;
  stored.value = expires === undefined ? { token } : { token, expires };
  sessionStorage.setItem(storageKey, JSON.stringify(stored.value));
  if (expires !== undefined)
    setTimeout(() => void renew(), Math.max(expires - Date.now() - renewAheadMs, 0));
}

function forget(): void {
  stored.value = undefined;
  sessionStorage.removeItem(storageKey);
}

async function renew(): Promise<void> {
  const { token, expires = 0 } = stored.value ?? {};
  if (token === undefined || expires - Date.now() > renewAheadMs) return;
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch("/login/renew", { method: "POST", headers }).catch(() => undefined);
  if (response?.ok) keep((await response.json()) as Stored);
}

function readStored(): Stored | undefined {
  try {
    const value = JSON.parse(sessionStorage.getItem(storageKey) ?? "null") as Stored | null;
    return value && typeof value.token === "string" && (value.expires ?? Infinity) > Date.now()
      ? value
      : undefined;
  } catch {
    return undefined;
  }
}

function fromOtherTab(): Promise<Stored | undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(undefined), handOverMs);
    const onMessage = ({ data }: MessageEvent<{ login?: Stored }>) => {
      if (!data.login) return;
      clearTimeout(timer);
      channel.removeEventListener("message", onMessage);
      resolve(data.login);
    };
    channel.addEventListener("message", onMessage);
    // oxlint-disable-next-line require-post-message-target-origin -- a channel, not a window
    channel.postMessage({ ask: true });
  });
}
