/** Who is logged in. The token is in this tab's session storage: it is in no cookie, and in no URL that is sent to a server. */
import { computed, signal } from "@preact/signals";
import { navigate } from "../router.ts";
import { beginAtProvider, finishAtProvider, placesOfLogin, renewAtProvider } from "./provider.ts";
import { forgetStored, store, stored } from "../state/tab-storage.ts";
import { type StoredLogin } from "./stored-login.ts";

const loginShape = { "token!": "text", expires: "number", refresh: "text" } as const;
const storageKey = "login";
const channelName = "spry.login";
/** How long a new tab waits for the login of another tab of this origin before it asks its user. */
const handOverMs = 150;
const renewAheadMs = 60 * 60 * 1000;
/** ID tokens live for minutes. */
const renewAtProviderAheadMs = 30_000;
/** Of several tabs with the same login, usually one renews it for all: a refresh token may work only once. */
const renewJitterMs = 10_000;
/** Where the browser's clock is wrong, a login seems to end at once. */
const minRenewMs = 1_000;
/** For removing what is stored, before the page is left in any case. */
const leaveMs = 2_000;

const login = signal<StoredLogin | undefined>(undefined);
/** For the user: why the login failed or has ended. */
export const loginProblem = signal("");
export const isLoggedIn = computed(() => login.value !== undefined);
export const currentToken = (): string => login.value?.token ?? "";

interface ChannelMessage {
  ask?: boolean;
  login?: StoredLogin;
  replaces?: string;
  /** The token of a user who has logged out. */
  ended?: string;
}

const channel = new BroadcastChannel(channelName);
channel.addEventListener("message", ({ data }: MessageEvent<ChannelMessage>) => {
  if (data.ended !== undefined && login.value && isSameUser(data.ended, login.value.token))
    return leave();
  // oxlint-disable-next-line require-post-message-target-origin -- a channel, not a window
  if (data.ask && login.value) channel.postMessage({ login: login.value });
  const isRenewed = data.replaces !== undefined && data.replaces === login.value?.token;
  // Another tab may be slow to respond, or be where the user logs in again after a login has ended.
  if (data.login && (isRenewed || (!login.value && isOpenToOthers))) keep(data.login);
});
/** Whether this tab takes the login of another one: not after its user has logged out. */
let isOpenToOthers = stored("logged-out", {}) === undefined;

// A link that is opened in a tab that is here already changes nothing but the fragment.
addEventListener("hashchange", () => {
  if (location.hash.startsWith("#code=")) void resumeLogin();
});

/** Logs in with the code in the address, with the login that this tab has stored, or with that of another tab, in this order. */
export async function resumeLogin(): Promise<void> {
  const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1];
  if (code !== undefined) {
    // It must not stay in the history.
    history.replaceState(null, "", location.pathname + location.search);
    if (await redeem(code)) return;
  }
  if (location.pathname === placesOfLogin.callback) {
    const finished = await finishAtProvider().catch((error: Error) => error);
    if (!(finished instanceof Error)) return announce(finished);
    loginProblem.value = finished.message;
  }
  const kept = readStored() ?? (isOpenToOthers ? await fromOtherTab() : undefined);
  if (kept) {
    keep(kept);
    loginProblem.value = "";
  }
  if (!Object.values(placesOfLogin).includes(location.pathname)) return;
  if (kept) navigate("/", { replace: true });
  else if (location.pathname === placesOfLogin.begin) await goToProvider();
}

/** Leaves the page for the identity provider, which sends the browser back to it. */
export async function goToProvider(): Promise<void> {
  try {
    await beginAtProvider();
  } catch (error) {
    loginProblem.value = (error as Error).message;
  }
}

async function redeem(code: string): Promise<boolean> {
  try {
    const response = await fetch("/login/redeem", {
      method: "POST",
      body: JSON.stringify({ code }),
    });
    const answer = (await response.json()) as StoredLogin & { message?: string };
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
  if (!login.value) return;
  loginProblem.value = "your login has expired";
  isOpenToOthers = true;
  forget();
}

/** Ends the login in all tabs that have it, and removes what they show and store: the next user of this browser sees none of it. */
export function logOut(): void {
  const token = currentToken();
  // oxlint-disable-next-line require-post-message-target-origin -- a channel, not a window
  channel.postMessage({ ended: token });
  leave();
}

/** The page begins again: what it holds in memory is gone with it. */
function leave(): void {
  isLeaving.value = true;
  isOpenToOthers = false;
  loginProblem.value = "";
  forgetStored();
  store("logged-out", {});
  forget();
  const removed = Promise.allSettled(leaving.map((run) => run()));
  const patience = new Promise((resolve) => setTimeout(resolve, leaveMs));
  void Promise.race([removed, patience]).then(() => location.replace("/"));
}
const leaving: (() => Promise<void>)[] = [];
/** What removes what is stored elsewhere, when the user logs out. */
export const onLeave = (run: () => Promise<void>): void => void leaving.push(run);
/** Nothing asks any more whether something would be lost. */
export const isLeaving = signal(false);

/** A login by link is always the owner's, whichever of them it is. */
const isSameUser = (one: string, other: string): boolean =>
  one === other || (one.startsWith(ownPrefix) && other.startsWith(ownPrefix));
const ownPrefix = "spry-login.";

function keep({ token, expires, refresh }: StoredLogin): void {
  login.value = {
    token,
    ...(expires !== undefined && { expires }),
    ...(refresh !== undefined && { refresh }),
  };
  loginProblem.value = "";
  isOpenToOthers = true;
  store("logged-out", undefined);
  store(storageKey, login.value);
  clearTimeout(renewal);
  if (expires === undefined) return;
  const ahead = refresh === undefined ? renewAheadMs : aheadOf(expires);
  renewal = setTimeout(() => void renew(), Math.max(expires - Date.now() - ahead, minRenewMs));
}
let renewal: ReturnType<typeof setTimeout> | undefined;

/** A different moment in each tab, and never in the first half of a token's life. */
const aheadOf = (expires: number) =>
  Math.min(renewAtProviderAheadMs + Math.random() * renewJitterMs, (expires - Date.now()) / 2);

/** Keeps a login, and gives it to other tabs. */
function announce(next: StoredLogin, replaces?: string): void {
  keep(next);
  // oxlint-disable-next-line require-post-message-target-origin -- a channel, not a window
  channel.postMessage({ login: next, replaces });
}

function forget(): void {
  login.value = undefined;
  store(storageKey, undefined);
}

async function renew(): Promise<void> {
  const { token, expires = 0, refresh } = login.value ?? {};
  if (token === undefined) return;
  if (refresh !== undefined) {
    const renewed = await renewAtProvider(refresh);
    // Another tab may have been faster: then what it got is here by now.
    if (renewed && login.value?.token === token) announce({ refresh, ...renewed }, token);
    return;
  }
  if (expires - Date.now() > renewAheadMs) return;
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch("/login/renew", { method: "POST", headers }).catch(() => undefined);
  if (response?.ok) keep((await response.json()) as StoredLogin);
}

function readStored(): StoredLogin | undefined {
  const value = stored<StoredLogin>(storageKey, loginShape);
  return value && value.token !== "" && (value.expires ?? Infinity) > Date.now()
    ? value
    : undefined;
}

function fromOtherTab(): Promise<StoredLogin | undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(undefined), handOverMs);
    const onMessage = ({ data }: MessageEvent<{ login?: StoredLogin }>) => {
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
