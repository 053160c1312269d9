import { type Sequence } from "../sequence.ts";
import { autoscalers } from "./autoscalers.ts";
import { cascades } from "./cascades.ts";
import { cronJobs } from "./cron-jobs.ts";
import { deployments } from "./deployments.ts";
import { indexedJobs } from "./indexed-jobs.ts";
import { jobs } from "./jobs.ts";
import { replicaSets } from "./replica-sets.ts";
import { surroundings } from "./surroundings.ts";

/** `SEQUENCES` plays only the cases whose names hold this text. */
const wanted = process.env["SEQUENCES"] ?? "";

/** The longest first, for they decide how long all of them take. */
const all: readonly Sequence[] = [
  ...autoscalers,
  ...cronJobs,
  ...jobs,
  ...indexedJobs,
  ...cascades,
  ...deployments,
  ...replicaSets,
  ...surroundings,
];

export const sequences = all.filter(({ name }) => name.includes(wanted));
