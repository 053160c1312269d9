/** What happens to a Job. */
import { resources } from "@spry/kube";
import { type Step, step } from "../sequence.ts";
import { job } from "./workloads.ts";

/** Longer than the second for which the real controller gathers changes of Pods. */
export const quietMs = 1800;

export const create = (spec: object = {}, pod: object = {}): Step =>
  step("create", (scene) => scene.create(resources.jobs, job(spec, pod)));
export const set = (spec: object): Step =>
  step(`set ${JSON.stringify(spec)}`, (scene) => scene.patch(resources.jobs, "work", { spec }));
export const ready = (count: number): Step => step(`${count} run`, (scene) => scene.ready(count));
export const succeed = (count: number, filter: object = {}): Step =>
  step(`${count} succeed ${JSON.stringify(filter)}`, (scene) => scene.succeed(count, filter));
export const fail = (
  count: number,
  filter: object = {},
  exitCode = 1,
  conditions: object[] = [],
): Step =>
  step(`${count} fail ${JSON.stringify(filter)}`, (scene) =>
    scene.fail(count, filter, exitCode, conditions),
  );
