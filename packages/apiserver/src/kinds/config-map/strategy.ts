import { deepEqual } from "@spry/kube";
import { type Strategy } from "../../resources/resource-type.ts";
import { checkDataKeyName } from "../../resources/validation/data-key.ts";

interface ConfigMap {
  data?: Record<string, string>;
  binaryData?: Record<string, string>;
  immutable?: boolean;
}

export const maxDataBytes = 1024 * 1024;

export const configMapStrategy: Strategy = {
  validate(object, errors, old) {
    const { data = {}, binaryData = {}, immutable } = object as ConfigMap;
    let size = 0;
    for (const [key, value] of Object.entries(data)) {
      checkDataKeyName(key, `data[${key}]`, errors);
      if (key in binaryData)
        errors.invalid(`data[${key}]`, key, "duplicate of key present in binaryData");
      size += Buffer.byteLength(value);
    }
    for (const [key, value] of Object.entries(binaryData)) {
      checkDataKeyName(key, `binaryData[${key}]`, errors);
      size += value.length * 0.75;
    }
    if (size > maxDataBytes) errors.tooLong("[]", maxDataBytes);
    const before = old as ConfigMap | undefined;
    if (!before?.immutable) return;
    if (!immutable) errors.forbidden("immutable", "field is immutable when `immutable` is set");
    for (const field of ["data", "binaryData"] as const) {
      if (!deepEqual(before[field], (object as ConfigMap)[field])) {
        errors.forbidden(field, "field is immutable when `immutable` is set");
      }
    }
  },
};
