import { type Clock } from "../../clock.ts";
import { unauthorized } from "./authentication.ts";
import { type BuildGrant, type Grant } from "./grants.ts";
import { type Owners } from "./owners.ts";

/**
 * What only the cluster knows of those whom logins were made for. Both reject when it cannot be asked; when the cluster refuses
 * the question, with the HTTP status as `code` (401, 403).
 */
export interface Tenants {
  /** Undefined when there is no such namespace. */
  namespaceUid(namespace: string): Promise<string | undefined>;
  /** Whether there is this Job, and it has not ended. */
  isJobActive(job: { namespace: string; name: string; uid: string }): Promise<boolean>;
}

/**
 * An answer counts for as long: a push is dozens of requests, and a client that asks again and again with a login that has ended
 * must not make the API server work for it. A login is made after what it was made for: a no is never too early.
 */
const rememberMs = 1000;
const rememberedLimit = 1000;
/** Questions for one request, when the namespace gets another owner between question and answer. */
const claimAttempts = 3;

/** Whether those whom logins were made for are still there. */
export class TenantCheck {
  readonly #tenants: Tenants | undefined;
  readonly #owners: Owners;
  readonly #clock: Clock;
  /** What was found to be so, or not to be so, and until when that counts. */
  readonly #known = new Map<string, { answer: boolean; until: number }>();
  /** Questions that wait for an answer: many who want to know the same at once ask once. */
  readonly #asking = new Map<string, Promise<boolean>>();

  constructor(tenants: Tenants | undefined, owners: Owners, clock: Clock) {
    this.#tenants = tenants;
    this.#owners = owners;
    this.#clock = clock;
  }

  /**
   * Throws when the grant's time is over. Where the cluster cannot be asked, what it said last about the namespace counts,
   * and of a build its time limit: nodes must get their images while the API server is down.
   */
  async check(grant: Grant): Promise<void> {
    if (grant.for === "platform" || grant.for === "node") return;
    const { namespace, uid } = grant;
    const isOver = grant.for === "build" && this.#clock.now() >= grant.expiresAt;
    const isValid =
      !isOver &&
      (grant.for !== "build" || (await this.#isBuilding(grant))) &&
      (await this.#isOwner(namespace, uid));
    if (!isValid) throw hasEnded();
  }

  /** Changes what is the grant's namespace's; rejects when that has another owner by now. */
  async asOwner<T>(grant: Grant, change: () => T | Promise<T>): Promise<T> {
    if (grant.for === "platform" || grant.for === "node") return change();
    return this.#owners.change(grant.namespace, (owner) => {
      if (owner !== grant.uid) throw hasEnded();
      return change();
    });
  }

  /** Whether the namespace is there and, now, the owner of its repositories. */
  async #isOwner(namespace: string, uid: string): Promise<boolean> {
    for (let attempt = 0; attempt < claimAttempts; attempt++) {
      const before = this.#owners.ownerOf(namespace);
      // Only a new answer makes an owner: an old one may be about the namespace that was there before.
      if (before !== uid) this.#forgetYes(keyOf(namespace, uid));
      if (!(await this.#isNamespaceThere(namespace, uid, before))) return false;
      if (!(await this.#owners.claim(namespace, uid, before))) continue;
      if (before !== undefined && before !== uid) this.#known.delete(keyOf(namespace, before));
      return true;
    }
    return false;
  }

  /** A request shares an answer only with those made since the last change of owner. */
  #isNamespaceThere(namespace: string, uid: string, before: string | undefined): Promise<boolean> {
    const key = keyOf(namespace, uid);
    return this.#ask(key, `${key} ${before}`, async (tenants) => {
      try {
        return (await tenants.namespaceUid(namespace)) === uid;
      } catch (error) {
        return !isRefusal(error) && this.#owners.ownerOf(namespace) === uid ? true : undefined;
      }
    });
  }

  #isBuilding({ namespace, job }: BuildGrant): Promise<boolean> {
    return this.#ask(job.uid, job.uid, async (tenants) => {
      try {
        return await tenants.isJobActive({ namespace, ...job });
      } catch (error) {
        return isRefusal(error) ? undefined : true;
      }
    });
  }

  /** `question` answers undefined for a no that is none of the cluster's, and is not remembered. */
  async #ask(
    what: string,
    sharedBy: string,
    question: (tenants: Tenants) => Promise<boolean | undefined>,
  ): Promise<boolean> {
    const tenants = this.#tenants;
    if (!tenants) return true;
    const known = this.#known.get(what);
    if (known && known.until > this.#clock.elapsed()) return known.answer;
    const running = this.#asking.get(sharedBy);
    if (running) return running;
    const asking = question(tenants)
      .then((answer) => this.#remember(what, answer))
      .finally(() => this.#asking.delete(sharedBy));
    this.#asking.set(sharedBy, asking);
    return asking;
  }

  #remember(what: string, answer: boolean | undefined): boolean {
    this.#known.delete(what);
    const [oldest] = this.#known.keys();
    if (oldest !== undefined && this.#known.size >= rememberedLimit) this.#known.delete(oldest);
    if (answer !== undefined)
      this.#known.set(what, { answer, until: this.#clock.elapsed() + rememberMs });
    return answer === true;
  }

  #forgetYes(what: string): void {
    if (this.#known.get(what)?.answer === true) this.#known.delete(what);
  }
}

function keyOf(namespace: string, uid: string): string {
  return `${namespace} ${uid}`;
}

function hasEnded(): Error {
  return unauthorized("this login has ended");
}

/** An API server that answers with 401 or 403 can be asked: what it said before does not count. 408 and 429 are passing troubles. */
function isRefusal(error: unknown): boolean {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "number" && code >= 400 && code < 500 && code !== 408 && code !== 429;
}
