import { type Clock } from "../../clock.ts";
import { unauthorized } from "./authentication.ts";
import { type BuildGrant, type Grant } from "./grants.ts";
import { type Owners } from "./owners.ts";

/** What only the cluster knows of those whom logins were made for. Both reject when it cannot be asked. */
export interface Tenants {
  /** Undefined when there is no such namespace. */
  namespaceUid(namespace: string): Promise<string | undefined>;
  /** Whether there is this Job, and it has not ended. */
  isJobActive(job: { namespace: string; name: string; uid: string }): Promise<boolean>;
}

/** An answer counts for as long: a push is dozens of requests. */
const rememberMs = 1000;
const rememberedLimit = 1000;

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
    const isThere = !isOver && (await this.#isNamespaceThere(namespace, uid));
    if (!isThere || (grant.for === "build" && !(await this.#isBuilding(grant))))
      throw unauthorized("this login has ended");
    await this.#owners.claim(namespace, uid);
  }

  #isNamespaceThere(namespace: string, uid: string): Promise<boolean> {
    return this.#ask(`${namespace} ${uid}`, async (tenants) => {
      try {
        return (await tenants.namespaceUid(namespace)) === uid;
      } catch {
        return this.#owners.ownerOf(namespace) === uid;
      }
    });
  }

  #isBuilding({ namespace, job }: BuildGrant): Promise<boolean> {
    return this.#ask(job.uid, async (tenants) => {
      try {
        return await tenants.isJobActive({ namespace, ...job });
      } catch {
        return true;
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
