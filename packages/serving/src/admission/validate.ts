import { type Configuration, type KService, type Revision, type Route } from "@spry/function";
import { deepEqual } from "@spry/kube";
import { type Settings } from "../settings/settings.ts";
import { checkAutoscaling, checkNoAutoscaling } from "./autoscaling-annotations.ts";
import { FieldErrors } from "./field-error.ts";
import {
  checkNameChange,
  checkNames,
  checkRolloutDuration,
  checkTemplateMetadata,
  checkUserInfo,
  differenceOf,
  ownerLabels,
} from "./metadata.ts";
import { checkRevisionSpec } from "./pod-spec.ts";
import { checkTraffic } from "./traffic.ts";

/** What is wrong with an object; `before` is what it is to replace. The schema has been checked. */
export type Validate<T> = (object: T, before: T | undefined, settings: Settings) => FieldErrors;

export const validateService: Validate<KService> = (service, before, settings) => {
  const errors = new FieldErrors().via("metadata", checkNames(service.metadata));
  const { annotations } = service.metadata;
  errors.via("metadata.annotations", checkNoAutoscaling(annotations));
  errors.via("metadata.annotations", checkRolloutDuration(annotations));
  errors.via("spec", checkTemplate(service, settings));
  errors.via("spec", checkTraffic(service.spec.traffic ?? [], { ofService: true }));
  if (before) {
    errors.via("metadata.annotations", checkUserInfo(service, before));
    errors.via("spec.template", checkNameChange(service, before));
  }
  return errors;
};

export const validateConfiguration: Validate<Configuration> = (object, before, settings) => {
  const errors = new FieldErrors().via("metadata", checkNames(object.metadata));
  errors.via("metadata.annotations", checkNoAutoscaling(object.metadata.annotations));
  errors.via("metadata.labels", ownerLabels.service(object));
  errors.via("spec", checkTemplate(object, settings));
  if (before) {
    if (!object.metadata.ownerReferences?.length)
      errors.via("metadata.annotations", checkUserInfo(object, before));
    errors.via("spec.template", checkNameChange(object, before));
  }
  return errors;
};

export const validateRevision: Validate<Revision> = (revision, before, settings) => {
  const errors = new FieldErrors().via("metadata", checkNames(revision.metadata));
  const { annotations } = revision.metadata;
  errors.via("metadata.annotations", checkAutoscaling(annotations, settings.autoscaler));
  errors.via("metadata.labels", ownerLabels.configuration(revision));
  if (!before) return errors.via("spec", checkRevisionSpec(revision.spec, settings));
  if (deepEqual(before.spec, revision.spec)) return errors;
  const difference = differenceOf(before.spec, revision.spec);
  return new FieldErrors().add("Immutable fields changed (-old +new)", "spec", difference);
};

export const validateRoute: Validate<Route> = (route, before) => {
  const errors = new FieldErrors().via("metadata", checkNames(route.metadata));
  const { annotations } = route.metadata;
  errors.via("metadata.annotations", checkNoAutoscaling(annotations));
  errors.via("metadata.annotations", checkRolloutDuration(annotations));
  errors.via("metadata.labels", ownerLabels.service(route));
  errors.via("spec", checkTraffic(route.spec.traffic ?? [], { ofService: false }));
  if (before && !route.metadata.ownerReferences?.length)
    errors.via("metadata.annotations", checkUserInfo(route, before));
  return errors;
};

function checkTemplate(object: KService | Configuration, settings: Settings): FieldErrors {
  const template = object.spec.template ?? {};
  const errors = new FieldErrors();
  const { name = "" } = object.metadata;
  errors.via("template.spec", checkRevisionSpec(template.spec ?? {}, settings));
  errors.via("template", checkTemplateMetadata(template, name, settings.autoscaler));
  return errors;
}
