import { deepEqual, type Job, type UnknownObject } from "@spry/kube";
import { type FieldErrors } from "../field-errors.ts";
import { type Strategy } from "../resources/resource-type.ts";
import { scheduleProblem } from "./cron-schedule.ts";
import { setPodSpecDefaults } from "./pod-spec.ts";
import { validatePodSpec } from "./pod-spec-validation.ts";

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
const uidLabel = "batch.kubernetes.io/controller-uid";
const nameLabel = "batch.kubernetes.io/job-name";

/** `pkg/apis/batch/v1/defaults.go`, `pkg/registry/batch/job/strategy.go`. */
export const jobStrategy: Strategy = {
  generation: true,
  selectableFields: ["status.successful"],
  deletionPolicy: {
    policy: "Orphan",
    warning:
      "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
  },
  defaults: (object) => setJobDefaults(object.spec as Spec | undefined),
  prepare(object, { old }) {
    if (old) return;
    object.status = {};
    generateSelector(object);
  },
  validate(object, errors, old) {
    const spec = object.spec as Spec | undefined;
    if (!spec) return errors.required("spec");
    validateJobSpec(spec, "spec", errors);
    const before = old?.spec as Spec | undefined;
    if (!before) return;
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
  validate(object, errors, old) {
    const spec = object.spec as CronJobSpec | undefined;
    if (!old && object.metadata.name && object.metadata.name.length > maxCronJobName)
      errors.invalid("metadata.name", object.metadata.name, "must be no more than 52 characters");
    validateSchedule(spec, errors);
    if (!spec?.jobTemplate?.spec) return errors.required("spec.jobTemplate.spec");
    validatePodSpec(
      spec.jobTemplate.spec.template?.spec,
      "spec.jobTemplate.spec.template.spec",
      errors,
      ["OnFailure", "Never"],
    );
  },
};

function validateSchedule(spec: CronJobSpec | undefined, errors: FieldErrors): void {
  const { schedule, timeZone, concurrencyPolicy } = spec ?? {};
  if (!schedule) errors.required("spec.schedule");
  else {
    const problem = scheduleProblem(schedule);
    if (problem) errors.invalid("spec.schedule", schedule, problem);
    if (schedule.includes("TZ")) {
      const instead = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
      errors.invalid("spec.schedule", schedule, instead);
    }
  }
  if (timeZone === "") {
    errors.invalid("spec.timeZone", timeZone, "timeZone must be nil or non-empty string");
  } else if (timeZone !== undefined && !isTimeZone(timeZone)) {
    errors.invalid("spec.timeZone", timeZone, `unknown time zone ${timeZone}`);
  }
  const policies = ["Allow", "Forbid", "Replace"];
  if (concurrencyPolicy && !policies.includes(concurrencyPolicy))
    errors.unsupported("spec.concurrencyPolicy", concurrencyPolicy, policies);
  for (const field of [
    "startingDeadlineSeconds",
    "successfulJobsHistoryLimit",
    "failedJobsHistoryLimit",
  ] as const) {
    const value = spec?.[field];
    if (value !== undefined && value < 0)
      errors.invalid(`spec.${field}`, value, "must be greater than or equal to 0");
  }
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
  spec.backoffLimit ??= 6;
  spec.completionMode ??= "NonIndexed";
  spec.suspend ??= false;
  spec.manualSelector ??= false;
  Object.assign(spec, {
    podReplacementPolicy:
      (spec as { podReplacementPolicy?: string }).podReplacementPolicy ?? "TerminatingOrFailed",
  });
  if (spec.template) spec.template.metadata ??= {};
  setPodSpecDefaults(spec.template?.spec);
}

/** A Job's Pods are told by its uid, so that no other Job's Pods are taken for its own. */
function generateSelector(object: UnknownObject): void {
  const spec = object.spec as Spec | undefined;
  if (!spec?.template || spec.manualSelector) return;
  const { uid = "", name = "" } = object.metadata;
  const added = { [uidLabel]: uid, "controller-uid": uid, [nameLabel]: name, "job-name": name };
  spec.template.metadata ??= {};
  spec.template.metadata.labels = { ...spec.template.metadata.labels, ...added };
  const selector = spec.selector ?? {};
  selector.matchLabels = { ...selector.matchLabels, [uidLabel]: uid };
  spec.selector = selector;
  const { labels } = object.metadata;
  if (!labels || Object.keys(labels).length === 0) {
    object.metadata.labels = { ...(spec.template.metadata.labels as Record<string, string>) };
  }
}

function validateJobSpec(spec: Spec, path: string, errors: FieldErrors): void {
  for (const field of [
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
  ] as const) {
    const value = spec[field];
    if (value !== undefined && value < 0)
      errors.invalid(`${path}.${field}`, value, "must be greater than or equal to 0");
  }
  if (!spec.template) return errors.required(`${path}.template`);
  const podSpec = spec.template.spec;
  // The default is none that a Job can have.
  if (podSpec && podSpec.restartPolicy !== "OnFailure" && podSpec.restartPolicy !== "Never") {
    errors.required(`${path}.template.spec.restartPolicy`, 'valid values: "OnFailure", "Never"');
    validatePodSpec({ ...podSpec, restartPolicy: "Never" }, `${path}.template.spec`, errors);
  } else validatePodSpec(podSpec, `${path}.template.spec`, errors);
}
