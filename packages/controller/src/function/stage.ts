import {
  type ConditionType,
  type Function,
  type FunctionStatus,
  type KService,
  type Reason,
} from "@spry/function";
import {
  type Clock,
  type Deployment,
  type EventRecorder,
  type KubeClient,
  type Logger,
  type ObjectKey,
} from "@spry/kube";
import { type CommitLookups } from "@spry/source";
import { type BuildLogins } from "../build/build-login.ts";
import { type BuildSlots } from "../build/build-slots.ts";
import { type InheritedBuilds } from "../build/inherited-builds.ts";
import { type Caches } from "../caches.ts";
import { type Settings } from "../config.ts";
import { type ForeignEdits } from "./foreign-edits.ts";
import { type FunctionMetrics } from "./function-metrics.ts";
import { type HandOvers } from "./serving/hand-overs.ts";
import { type LostImages } from "../build/lost-images.ts";
import { type ReferencedObjects } from "./referenced-objects.ts";
import { type RegistryAccess } from "../registry/registry-secret.ts";

/** How a stage ended. With a reason, the stage's condition says so; its status follows from it. */
export type Outcome =
  /** The next stage may run. */
  | { kind: "done"; reason?: Reason; message?: string; recheckAfterMs?: number }
  /**
   * Something else has to happen first; a watch, or the time that is given, brings the next pass.
   */
  | { kind: "wait"; reason: Reason; message: string; recheckAfterMs?: number }
  /** The user must change something first. */
  | { kind: "stop"; reason: Reason; message: string };

/** One step of a pass. It works from the state it finds, so it may be run again at any moment. */
export interface Stage {
  readonly name: string;
  readonly condition: ConditionType;
  run(draft: Draft, deps: Deps): Promise<Outcome>;
  /** The pass has ended before this stage, or with an error: what the stage holds for the Function is for others. */
  release?(key: ObjectKey, deps: Deps): void;
  /** The Function is deleted: what the stage remembers of it can go. */
  forget?(key: ObjectKey, deps: Deps): void;
}

/** What the build stage found or made. */
export interface BuiltImage {
  /** By digest. */
  image: string;
  buildKey: string;
}

/** A Function during one pass. */
export interface Draft {
  readonly key: ObjectKey;
  /** As it is stored, with its defaults. */
  readonly fn: Function;
  readonly namespace: string;
  readonly name: string;
  /** What the status will be; written once, at the end. */
  readonly status: FunctionStatus;
  /** Of a Git source: what is built. */
  commit?: string;
  /** Found or applied in this pass. */
  deployment?: Deployment | undefined;
  /** The same of a Function that is served on demand. */
  kservice?: KService | undefined;
  /** The build stage's result; `builtOf` reads it. */
  built?: BuiltImage;
  /** The record stage's result: the number of what is deployed in the Function's history. */
  revision?: number;
}

/** What stages work with. */
export interface Deps {
  readonly client: KubeClient;
  readonly settings: Settings;
  readonly caches: Caches;
  readonly slots: BuildSlots;
  readonly references: ReferencedObjects;
  readonly commits: CommitLookups;
  readonly lost: LostImages;
  readonly inherited: InheritedBuilds;
  readonly foreignEdits: ForeignEdits;
  readonly handOvers: HandOvers;
  readonly buildLogins: BuildLogins;
  /** The platform's own, when it has one. */
  readonly registry: RegistryAccess | undefined;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics?: FunctionMetrics;
}

/** The result of the build stage, for the stages after it. */
export function builtOf({ built, key }: Draft): BuiltImage {
  if (!built) throw new Error(`deploying ${key}: the build stage has not run`);
  return built;
}

export const done: Outcome = { kind: "done" };
