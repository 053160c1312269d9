/**
 * What a build is at the platform's own registry: a client that may push its Function's image and its namespace's
 * dependency layers while its Job runs, and nothing else.
 */
import { randomBytes } from "node:crypto";
import { annotations, boundedName, childLabelsOf, names } from "@spry/function";
import {
  controllerRef,
  isAlreadyExists,
  isForbidden,
  type Job,
  messageOf,
  resources,
  type Secret,
} from "@spry/kube";
import { type ActiveRegistry } from "../registry/registry.ts";
import { authsIn, authsOf, type RegistryAccess } from "../registry/registry-secret.ts";
import { type Deps, type Draft } from "../function/stage.ts";

/** Beyond the Job's own limit: clocks differ, and a Job's time begins when it is seen. */
const slackSeconds = 300;
const rememberedLimit = 1000;

export class BuildLogins {
  /** Jobs whose Secret exists. For others, an earlier controller may have been killed before it created one. */
  readonly #made = new Set<string>();

  /** A name for the Secret of a Job that is to be made; undefined where builds use the namespace's own login. */
  newName(
    jobName: string,
    active: ActiveRegistry,
    own: RegistryAccess | undefined,
  ): string | undefined {
    const isOwn = ({ push }: { push: string }) => push === own?.pushAddress;
    if (![active, ...active.others].some(isOwn)) return undefined;
    // Another for each try: nodes may still have the one before at hand.
    return boundedName(jobName, `-${randomBytes(3).toString("hex")}`);
  }

  /**
   * Makes the Secret of a Job that has been made, which goes with it; its Pod waits for the Secret. Returns why it cannot be made,
   * where a quota or policy refuses it.
   */
  async ensure(draft: Draft, job: Job, deps: Deps): Promise<string | undefined> {
    const { name: jobName = "", uid = "", annotations: marks } = job.metadata;
    const name = marks?.[annotations.registryLogin];
    const { registry, client, clock, settings, caches } = deps;
    if (!name || !registry || this.#made.has(uid)) return undefined;
    const { namespace, fn } = draft;
    const login = registry.logins.build({
      namespace,
      uid: caches.namespaces.get(namespace)?.metadata.uid ?? "",
      function: draft.name,
      job: { name: jobName, uid },
      expiresAt: clock.now() + (settings.buildTimeoutSeconds + slackSeconds) * 1000,
      base: repositoryIn(fn.spec.runtimeImageOverride, registry),
    });
    const known = caches.internalRegistrySecrets.get(
      `${namespace}/${names.internalRegistrySecret}`,
    );
    const config = JSON.stringify({ auths: { ...authsIn(known), ...authsOf(registry, login) } });
    const secret: Secret = {
      metadata: {
        name,
        namespace,
        labels: childLabelsOf(fn),
        ownerReferences: [{ ...controllerRef(resources.jobs, job), blockOwnerDeletion: false }],
      },
      type: "kubernetes.io/dockerconfigjson",
      immutable: true,
      data: { ".dockerconfigjson": Buffer.from(config).toString("base64") },
    };
    try {
      await client.create(resources.secrets, secret);
    } catch (error) {
      if (isForbidden(error)) return `its Secret cannot be made: ${messageOf(error)}`;
      if (!isAlreadyExists(error)) throw error;
    }
    if (this.#made.size >= rememberedLimit) this.#made.clear();
    this.#made.add(uid);
    return undefined;
  }
}

/** Of an image in the platform's own registry, without tag and digest. */
function repositoryIn(image: string | undefined, { pushAddress, pullAddress }: RegistryAccess) {
  const host = [pushAddress, pullAddress].find((each) => image?.startsWith(`${each}/`));
  return host && image?.slice(host.length + 1).split(/[@:]/, 1)[0];
}
