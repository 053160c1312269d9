import { type PodSpec } from "@spry/kube";
import { type FieldErrors } from "../../../field-errors.ts";
import { checkName, checkOneOf } from "../../../resources/validation/formats.ts";

/** `pkg/apis/core/validation.ValidateVolumes`. */

type Volume = NonNullable<PodSpec["volumes"]>[number];

const hostPathTypes = [
  "",
  "BlockDevice",
  "CharDevice",
  "Directory",
  "DirectoryOrCreate",
  "File",
  "FileOrCreate",
  "Socket",
];

/** Returns the names that containers can mount. */
export function validateVolumes(spec: PodSpec, path: string, errors: FieldErrors): Set<string> {
  const names = new Set<string>();
  for (const [index, volume] of (spec.volumes ?? []).entries()) {
    const at = `${path}.volumes[${index}]`;
    validateSource(volume, at, errors);
    if (!volume.name) errors.required(`${at}.name`);
    else {
      checkName(volume.name, "label", `${at}.name`, errors);
      if (names.has(volume.name)) errors.duplicate(`${at}.name`, volume.name);
    }
    names.add(volume.name);
  }
  return names;
}

function validateSource(volume: Volume, path: string, errors: FieldErrors): void {
  const fields = Object.keys(volume).filter((key) => key !== "name");
  for (const extra of fields.slice(1))
    errors.forbidden(`${path}.${extra}`, "may not specify more than 1 volume type");
  const { secret, configMap, hostPath } = volume;
  if (hostPath) {
    const { path: target, type } = hostPath as { path?: string; type?: string };
    if (!target) errors.required(`${path}.hostPath.path`);
    else if (target.split("/").includes(".."))
      errors.invalid(`${path}.hostPath.path`, target, "must not contain '..'");
    checkOneOf(type, hostPathTypes, `${path}.hostPath.type`, errors);
  }
  if (secret && !secret.secretName) errors.required(`${path}.secret.secretName`);
  if (configMap && !configMap.name) errors.required(`${path}.configMap.name`);
  const claim = (volume as { persistentVolumeClaim?: { claimName?: string } })
    .persistentVolumeClaim;
  if (claim && !claim.claimName) errors.required(`${path}.persistentVolumeClaim.claimName`);
  for (const [field, source] of Object.entries({ secret, configMap })) {
    for (const [index, item] of (source?.items ?? []).entries()) {
      const at = `${path}.${field}.items[${index}]`;
      if (!item.key) errors.required(`${at}.key`);
      if (!item.path) errors.required(`${at}.path`);
      else if (item.path.startsWith("/"))
        errors.invalid(`${at}.path`, item.path, "must be a relative path");
      else if (item.path.split("/").includes(".."))
        errors.invalid(`${at}.path`, item.path, "must not contain '..'");
    }
  }
}
