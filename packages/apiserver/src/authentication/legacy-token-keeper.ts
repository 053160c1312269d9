import { type Logger, messageOf, type UnknownObject } from "@spry/kube";
import { StaleWriteError, type Store } from "../store/store.ts";
import { type StoredObject } from "../store/stored-object.ts";
import { accountNameAnnotation, tokenSecretType } from "./legacy-claims.ts";
import { serviceAccountUsername } from "./service-account-user.ts";
import { type ServiceAccountTokens } from "./service-account-tokens.ts";

const accountUidAnnotation = "kubernetes.io/service-account.uid";

/**
 * Fills Secrets of type `kubernetes.io/service-account-token` with a token of the ServiceAccount that they name, and
 * removes those whose ServiceAccount does not exist (any more).
 */
export class LegacyTokenKeeper {
  readonly #store: Store;
  readonly #tokens: ServiceAccountTokens;
  readonly #rootCa: Promise<string | undefined>;
  readonly #log: Logger;
  #stops: (() => void)[] = [];
  #running: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(
    store: Store,
    tokens: ServiceAccountTokens,
    rootCa: string | Promise<string> | undefined,
    log: Logger,
  ) {
    this.#store = store;
    this.#tokens = tokens;
    // The code that issues it reports why it failed.
    this.#rootCa = Promise.resolve(rootCa).catch(() => undefined);
    this.#log = log;
  }

  start(): void {
    const store = this.#store;
    for (const stored of store.list("/secrets")) this.#schedule(stored);
    this.#stops = [
      store.watch("/secrets", store.revision, ({ type, current }) => {
        if (type !== "DELETED") this.#schedule(current);
      }),
      store.watch("/serviceaccounts", store.revision, ({ type, current: { namespace, name } }) => {
        if (type === "MODIFIED") return;
        for (const secret of store.list("/secrets", namespace)) {
          if (isTokenSecret(secret) && accountNameOf(secret.object) === name)
            this.#schedule(secret);
        }
      }),
    ];
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const stop of this.#stops) stop();
    await this.#running;
  }

  #schedule(secret: StoredObject): void {
    if (!isTokenSecret(secret)) return;
    this.#running = this.#running
      .then(() => this.#sync(secret))
      .catch((error: unknown) => {
        // Another writer was faster: its change leads here again.
        if (error instanceof StaleWriteError) return;
        const { namespace, name } = secret;
        this.#log.error(
          { secret: `${namespace}/${name}`, error: messageOf(error) },
          "token Secret",
        );
      });
  }

  async #sync({ namespace, name }: StoredObject): Promise<void> {
    const store = this.#store;
    const secret = store.get({ collection: "/secrets", namespace, name });
    if (this.#stopped || !secret || !isTokenSecret(secret)) return;
    const next = secret.copy();
    if (next.metadata.deletionTimestamp) return;
    const account = accountNameOf(next);
    const found = store.get({ collection: "/serviceaccounts", namespace, name: account })?.object;
    const annotations = (next.metadata.annotations ??= {});
    const uid = found?.metadata.uid ?? "";
    const expected = annotations[accountUidAnnotation];
    if (!found || (expected && expected !== uid)) {
      if (!next.metadata.finalizers?.length) await store.remove(secret);
      return;
    }
    const rootCa = await this.#rootCa;
    const data = (next.data ?? {}) as Record<string, string>;
    const wanted: Record<string, string> = {
      token: data.token ?? "",
      namespace: Buffer.from(namespace).toString("base64"),
      ...(rootCa && { "ca.crt": Buffer.from(rootCa).toString("base64") }),
    };
    const isFilled = Object.entries(wanted).every(([key, value]) => value && data[key] === value);
    if (isFilled && expected) return;
    if (!wanted.token) {
      const token = await this.#tokens.issueLegacy({
        sub: serviceAccountUsername(namespace, account),
        "kubernetes.io/serviceaccount/namespace": namespace,
        "kubernetes.io/serviceaccount/secret.name": name,
        "kubernetes.io/serviceaccount/service-account.name": account,
        "kubernetes.io/serviceaccount/service-account.uid": uid,
      });
      wanted.token = Buffer.from(token).toString("base64");
    }
    annotations[accountUidAnnotation] = uid;
    next.data = { ...data, ...wanted };
    await store.put(secret, secret, next);
  }
}

/** Decided by the text: most Secrets are of other types, and need not be parsed. */
function isTokenSecret(stored: StoredObject): boolean {
  return stored.json.includes(`"${tokenSecretType}"`) && stored.object.type === tokenSecretType;
}

function accountNameOf({ metadata }: UnknownObject): string {
  return metadata.annotations?.[accountNameAnnotation] ?? "";
}
