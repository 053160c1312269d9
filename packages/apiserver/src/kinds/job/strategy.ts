import { deepEqual, type Job, type UnknownObject } from "@spry/kube";
import { type FieldErrors } from "../../field-errors.ts";
import { type Strategy } from "../../resources/resource-type.ts";
import { scheduleProblem } from "./cron-schedule.ts";
import { podNameWarnings, podWarnings } from "../warnings.ts";
import { setPodSpecDefaults } from "../pod/spec.ts";
import { checkNotNegative, checkOneOf } from "../../resources/validation/formats.ts";
import {
  type JobSpec,
  nameLabel,
  uidLabel,
  validateJob,
  validateJobSpec,
  validateSelector,
} from "./validation.ts";

type Spec = NonNullable<Job["spec"]>;
interface CronJobSpec {
  schedule?: string;
  timeZone?: string;
  startingDeadlineSeconds?: number;
  concurrencyPolicy?: string;
  suspend?: boolean;
  successfulJobsHistoryLimit?: number;
  failedJobsHistoryLimit?: number;
  jobTemplate?: { metadata?: object; spec?: Spec };
}

/** Its Jobs have eleven characters more, and Pods of theirs must fit in a label. */
const maxCronJobName = 52;

/** `pkg/apis/batch/v1/defaults.go`, `pkg/registry/batch/job/strategy.go`. */
export const jobStrategy: Strategy = {
  generation: true,
  selectableFields: ["status.successful"],
  deletionPolicy: {
    policy: "Orphan",
    warning:
      "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
  },
  defaults(object) {
    const spec = object.spec as Spec | undefined;
    setJobDefaults(spec);
    const { labels } = spec?.template?.metadata ?? {};
    const own = object.metadata.labels;
    if (labels && Object.keys(own ?? {}).length === 0)
      object.metadata.labels = { ...(labels as Record<string, string>) };
  },
  prepare(object, { old }) {
    if (old) return;
    object.status = {};
    generateSelector(object);
  },
  warnings(object, old) {
    const template = (object.spec as Spec | undefined)?.template ?? {};
    const names = old ? [] : podNameWarnings(object);
    return [...names, ...podWarnings(template, "spec.template")];
  },
  validate(object, errors, old, subresource) {
    if (subresource === "status") return;
    validateJob(object, errors);
    const spec = (object.spec ?? {}) as Spec;
    const before = old?.spec as Spec | undefined;
    if (!before) return;
    // Kubernetes looks at the specification of an update twice.
    validateJobSpec(spec, "spec", errors);
    validateSelector(spec, errors);
    for (const field of ["selector", "completionMode", "template"] as const) {
      const editable = before.suspend === true && field === "template";
      if (!editable && !deepEqual(before[field], spec[field])) {
        errors.invalid(`spec.${field}`, spec[field], "field is immutable");
      }
    }
  },
};

export const cronJobStrategy: Strategy = {
  generation: true,
  defaults(object) {
    const spec = object.spec as CronJobSpec | undefined;
    if (!spec) return;
    spec.concurrencyPolicy ??= "Allow";
    spec.suspend ??= false;
    spec.successfulJobsHistoryLimit ??= 3;
    spec.failedJobsHistoryLimit ??= 1;
    const { jobTemplate } = spec;
    if (jobTemplate) jobTemplate.metadata ??= {};
    const template = jobTemplate?.spec?.template;
    if (template) template.metadata ??= {};
    setPodSpecDefaults(template?.spec);
  },
  prepare: (object, { old }) => void (old ? undefined : (object.status = {})),
  warnings(object, old) {
    const template = (object.spec as CronJobSpec | undefined)?.jobTemplate?.spec?.template ?? {};
    const names = old ? [] : podNameWarnings(object);
    return [...names, ...podWarnings(template, "spec.jobTemplate.spec.template")];
  },
  validate(object, errors, old) {
    const spec = (object.spec ?? {}) as CronJobSpec;
    const { name } = object.metadata;
    if (!old && name && name.length > maxCronJobName)
      errors.invalid("metadata.name", name, "must be no more than 52 characters");
    validateSchedule(spec, errors);
    const template = (spec.jobTemplate?.spec ?? {}) as JobSpec;
    const path = "spec.jobTemplate.spec";
    validateJobSpec(template, path, errors);
    if (template.selector)
      errors.invalid(`${path}.selector`, template.selector, "`selector` will be auto-generated");
    if (template.manualSelector) {
      errors.unsupported(`${path}.manualSelector`, true, ["nil", "false"]);
    }
    checkNotNegative(
      spec,
      ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"],
      "spec",
      errors,
    );
  },
};

function validateSchedule(spec: CronJobSpec, errors: FieldErrors): void {
  const { schedule, timeZone, concurrencyPolicy } = spec;
  if (!schedule) errors.required("spec.schedule");
  else {
    const plain = schedule.replace(/^(?:CRON_)?TZ=\S+\s+/, "");
    const problem = scheduleProblem(plain);
    if (problem) errors.invalid("spec.schedule", schedule, problem);
    if (schedule.includes("TZ")) {
      const instead = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
      errors.invalid("spec.schedule", schedule, instead);
    }
  }
  checkNotNegative(spec, ["startingDeadlineSeconds"], "spec", errors);
  if (timeZone === "") {
    errors.invalid("spec.timeZone", timeZone, "timeZone must be nil or non-empty string");
  } else if (timeZone !== undefined && !isTimeZone(timeZone)) {
    errors.invalid("spec.timeZone", timeZone, `unknown time zone ${timeZone}`);
  }
  checkOneOf(concurrencyPolicy, ["Allow", "Forbid", "Replace"], "spec.concurrencyPolicy", errors);
}

/** A name of the IANA database; offsets, which the language would take too, are none. */
function isTimeZone(timeZone: string): boolean {
  if (!/^[A-Za-z]/.test(timeZone) || timeZone.toLowerCase() === "local") return false;
  try {
    return Intl.DateTimeFormat("en", { timeZone }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}

function setJobDefaults(spec: Spec | undefined): void {
  if (!spec) return;
  if (spec.completions === undefined && spec.parallelism === undefined) {
    spec.completions = 1;
    spec.parallelism = 1;
  }
  spec.parallelism ??= 1;
  // Failures of indexes count against their own limit, unless the Job has one too.
  spec.backoffLimit ??= spec.backoffLimitPerIndex === undefined ? 6 : 2 ** 31 - 1;
  spec.completionMode ??= "NonIndexed";
  spec.suspend ??= false;
  spec.manualSelector ??= false;
  const policies = spec as JobSpec;
  policies.podReplacementPolicy ??= policies.podFailurePolicy ? "Failed" : "TerminatingOrFailed";
  if (spec.template) spec.template.metadata ??= {};
  setPodSpecDefaults(spec.template?.spec);
}

/** A Job's Pods are identified by its uid, so that no other Job's Pods are taken for its own. */
function generateSelector(object: UnknownObject): void {
  const spec = object.spec as Spec | undefined;
  if (!spec?.template || spec.manualSelector) return;
  const { uid = "", name = "" } = object.metadata;
  const added = { [uidLabel]: uid, [nameLabel]: name, "controller-uid": uid, "job-name": name };
  spec.template.metadata ??= {};
  const { labels } = object.metadata;
  // Labels that came from the template are the template's.
  const isTaken = deepEqual(labels, spec.template.metadata.labels);
  spec.template.metadata.labels = { ...added, ...spec.template.metadata.labels };
  const selector = spec.selector ?? {};
  selector.matchLabels = { ...selector.matchLabels, [uidLabel]: uid };
  spec.selector = selector;
  if (labels && isTaken)
    object.metadata.labels = { ...(spec.template.metadata.labels as Record<string, string>) };
}
