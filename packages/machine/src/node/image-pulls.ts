import { parseImageName } from "@spry/image";
import { type Clock, messageOf, type OutboundGuard, type PullCredentials } from "@spry/kube";
import { MissingInterpreterError } from "../sandbox/python-interpreter.ts";
import { type LocalImage, type Sandbox } from "../sandbox/sandbox.ts";
import { Backoff } from "./backoff.ts";
import { type ContainerRun } from "./container-run.ts";
import { type ImageStore } from "./images.ts";

interface Pull {
  running: boolean;
  /** Fetched, and not yet handed out. */
  image?: LocalImage;
  retryAt: number;
  backoff: Backoff;
}

export interface ImagePullsOptions {
  /** Read for each attempt: a Secret may come later than its Pod. */
  credentials: () => Promise<PullCredentials | undefined>;
  /** Uid of the Pod's namespace. */
  namespaceUid: () => Promise<string>;
  images: ImageStore;
  guard?: OutboundGuard;
  sandbox: Sandbox;
  clock: Clock;
  note: (type: "Normal" | "Warning", reason: string, message: string) => void;
  wake: () => void;
  /** Runs work that is part of the Pod's start. */
  during: <T>(work: () => Promise<T>) => Promise<T>;
}

/** Gets the images of one Pod's containers, by their pull policies, with kubelet's Events and pauses. */
export class ImagePulls {
  readonly #options: ImagePullsOptions;
  readonly #pulls = new Map<string, Pull>();
  /** Once it is known. */
  #namespaceUid: string | undefined;

  constructor(options: ImagePullsOptions) {
    this.#options = options;
  }

  /** Looks up early what every image needs, so that one that is here can be run at once. A failure shows when it is needed. */
  async begin(): Promise<void> {
    try {
      this.#namespaceUid ??= await this.#options.namespaceUid();
    } catch {
      // A caller that needs it asks again.
    }
  }

  /** The image of that name, if it is here and the Pod may use it. */
  async presentFor(name: string): Promise<LocalImage | undefined> {
    await this.begin();
    const present = this.#options.images.find(name);
    return present && this.#isUsable(present) ? present : undefined;
  }

  /**
   * Whether an image that was not here is on its way. A container that waits for a Pod can be chosen when it is here; once it could not be
   * had, nothing is to wait for it.
   */
  isBringing(container: ContainerRun): boolean {
    const known = this.#pulls.get(container.name);
    if (known) return known.running;
    if (this.#options.images.find(container.spec.image ?? "")) return false;
    this.imageFor(container);
    return this.#pulls.get(container.name)?.running ?? false;
  }

  /** The image, ready to be run; undefined when it has to be waited for (the container says why). */
  imageFor(container: ContainerRun): LocalImage | undefined {
    const { images, clock } = this.#options;
    const { image: name = "", imagePullPolicy } = container.spec;
    const policy = imagePullPolicy ?? defaultPolicy(name);
    const pull = this.#pulls.get(container.name) ?? {
      running: false,
      retryAt: 0,
      backoff: new Backoff(),
    };
    this.#pulls.set(container.name, pull);
    // Each run of a container takes the image it was given, once.
    if (pull.image) {
      const image = pull.image;
      delete pull.image;
      return image;
    }
    if (pull.running) return undefined;
    const check = images.check(name);
    if (check) {
      void this.#afterCheck(pull, check);
      return undefined;
    }
    const present = images.find(name);
    if (policy === "Never" && !present) {
      this.#refuse(container, name);
      return undefined;
    }
    if (clock.elapsed() < pull.retryAt) {
      this.#backOff(container, name);
      return undefined;
    }
    const isPinned = name.includes("@sha256:");
    const fetch = !present || (policy === "Always" && !isPinned);
    const isKnown = !fetch && this.#namespaceUid !== undefined;
    if (isKnown && this.#isUsable(present) && this.#options.sandbox.isPrepared(present)) {
      this.#notePresent(name);
      return present;
    }
    const { during } = this.#options;
    void during(() => this.#get(container, pull, fetch ? undefined : present));
    return undefined;
  }

  /** An image that is here is for Pods of those namespaces that a registry has given it to. */
  #isUsable(image: LocalImage): boolean {
    return this.#options.images.mayUse(image, this.#namespaceUid ?? "");
  }

  #notePresent(name: string): void {
    const message = `Container image "${name}" already present on machine`;
    this.#options.note("Normal", "Pulled", message);
  }

  #refuse(container: ContainerRun, name: string): void {
    const message = `Container image "${name}" is not present with pull policy of Never`;
    if (container.status().state?.waiting?.reason !== "ErrImageNeverPull")
      this.#options.note("Warning", "ErrImageNeverPull", message);
    container.wait("ErrImageNeverPull", message);
  }

  msUntilRetry(container: ContainerRun): number {
    const pull = this.#pulls.get(container.name);
    if (!pull || pull.running || pull.retryAt === 0) return Number.POSITIVE_INFINITY;
    return Math.max(1, pull.retryAt - this.#options.clock.elapsed());
  }

  /** The image is here and has many files: whether all of them are there takes its time. */
  async #afterCheck(pull: Pull, check: Promise<void>): Promise<void> {
    const { during, wake } = this.#options;
    pull.running = true;
    await during(() => check);
    pull.running = false;
    wake();
  }

  /** Fetches the image, or only makes the present one ready; then wakes the Pod. */
  async #get(container: ContainerRun, pull: Pull, present: LocalImage | undefined): Promise<void> {
    const { sandbox, clock, note, wake } = this.#options;
    pull.running = true;
    // That ends the run, so that a task is over and makes room; what comes next is the Pod's policy.
    let isMissing = false;
    try {
      this.#namespaceUid ??= await this.#options.namespaceUid();
      const { image: name = "", imagePullPolicy } = container.spec;
      const usable = present && this.#isUsable(present) ? present : undefined;
      if (usable) this.#notePresent(name);
      else if (imagePullPolicy === "Never") return this.#refuse(container, name);
      const image = usable ?? (await this.#fetch(container, this.#namespaceUid));
      if (!image) return;
      await sandbox.prepare(image, (message) => note("Normal", "Preparing", message));
      pull.image = image;
    } catch (error) {
      // The image is there, but not what it runs with.
      isMissing = error instanceof MissingInterpreterError;
      if (isMissing) return container.failToStart(messageOf(error));
      container.wait("CreateContainerError", messageOf(error));
      note("Warning", "Failed", `Error: ${messageOf(error)}`);
    } finally {
      const hasFailed = !pull.image && !isMissing;
      if (hasFailed) pull.backoff.failed(clock.elapsed());
      pull.retryAt = hasFailed ? clock.elapsed() + pull.backoff.nextPauseMs : 0;
      pull.running = false;
      wake();
    }
  }

  async #fetch(container: ContainerRun, namespaceUid: string): Promise<LocalImage | undefined> {
    const { images, clock, note, guard } = this.#options;
    const { image: name = "" } = container.spec;
    const started = clock.elapsed();
    try {
      note("Normal", "Pulling", `Pulling image "${name}"`);
      const credentials = await this.#options.credentials();
      if (credentials && credentials.missing.length > 0)
        note(
          "Warning",
          "FailedToRetrieveImagePullSecret",
          `Unable to retrieve some image pull secrets (${credentials.missing.join(", ")}); attempting to pull the image may not succeed.`,
        );
      const image = await images.pull(name, { namespaceUid, credentials, guard });
      const seconds = ((clock.elapsed() - started) / 1000).toFixed(3);
      note("Normal", "Pulled", `Successfully pulled image "${name}" in ${seconds}s`);
      return image;
    } catch (error) {
      const reason = isImageName(name) ? "ErrImagePull" : "InvalidImageName";
      note("Warning", "Failed", `Failed to pull image "${name}": ${messageOf(error)}`);
      note("Warning", "Failed", `Error: ${reason}`);
      container.wait(reason, messageOf(error));
      return undefined;
    }
  }

  /** Between two attempts. Other reasons than a failed pull are still shown as they are. */
  #backOff(container: ContainerRun, name: string): void {
    const waiting = container.status().state?.waiting;
    if (waiting?.reason !== "ErrImagePull") return;
    const message = `Back-off pulling image "${name}"`;
    this.#options.note("Normal", "BackOff", message);
    container.wait("ImagePullBackOff", `${message}: ${waiting.message}`);
  }
}

function isImageName(name: string): boolean {
  try {
    parseImageName(name);
    return true;
  } catch {
    return false;
  }
}

/** `Always` for the tag `latest`, which may mean another image each time. */
function defaultPolicy(name: string): "Always" | "IfNotPresent" {
  if (name.includes("@")) return "IfNotPresent";
  const tag = /:([^:/]+)$/.exec(name)?.[1] ?? "latest";
  return tag === "latest" ? "Always" : "IfNotPresent";
}
