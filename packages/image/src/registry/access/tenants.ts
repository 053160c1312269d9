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

/** An answer counts for as long: a push is dozens of requests. */
const rememberMs = 1000;
const rememberedLimit = 1000;
/** Questions for one request, when the namespace gets another owner between question and answer. */
const claimAttempts = 3;

/** Whether those whom logins were made for are still there. */
export class TenantCheck {
  readonly #tenants: Tenants | undefined;
  readonly #owners: Owners;
  readonly #clock: Clock;
  /** What was found to be so, and until when that counts. */
  readonly #known = new Map<string, number>();

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

  /** Throws when the grant's namespace has another owner by now. Without delay: what follows at once is the grant's own. */
  requireOwner(grant: Grant): void {
    if (grant.for === "platform" || grant.for === "node") return;
    if (this.#owners.ownerOf(grant.namespace) !== grant.uid) throw hasEnded();
  }

  /** Whether the namespace is there and, now, the owner of its repositories. */
  async #isOwner(namespace: string, uid: string): Promise<boolean> {
    for (let attempt = 0; attempt < claimAttempts; attempt++) {
      const before = this.#owners.ownerOf(namespace);
      // Only a new answer makes an owner: an old one may be about the namespace that was there before.
      if (before !== uid) this.#known.delete(keyOf(namespace, uid));
      if (!(await this.#isNamespaceThere(namespace, uid))) return false;
      if (!(await this.#owners.claim(namespace, uid, before))) continue;
      if (before !== undefined && before !== uid) this.#known.delete(keyOf(namespace, before));
      return true;
    }
    return false;
  }

  #isNamespaceThere(namespace: string, uid: string): Promise<boolean> {
    return this.#ask(keyOf(namespace, uid), async (tenants) => {
      try {
        return (await tenants.namespaceUid(namespace)) === uid;
      } catch (error) {
        return !isRefusal(error) && this.#owners.ownerOf(namespace) === uid;
      }
    });
  }

  #isBuilding({ namespace, job }: BuildGrant): Promise<boolean> {
    return this.#ask(job.uid, async (tenants) => {
      try {
        return await tenants.isJobActive({ namespace, ...job });
      } catch (error) {
        return !isRefusal(error);
      }
    });
  }

  /** Only a yes is remembered: who is new counts at once. */
  async #ask(what: string, question: (tenants: Tenants) => Promise<boolean>): Promise<boolean> {
    if (!this.#tenants) return true;
    if ((this.#known.get(what) ?? 0) > this.#clock.now()) return true;
    const answer = await question(this.#tenants);
    if (this.#known.size >= rememberedLimit) this.#known.clear();
    if (answer) this.#known.set(what, this.#clock.now() + rememberMs);
    else this.#known.delete(what);
    return answer;
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
