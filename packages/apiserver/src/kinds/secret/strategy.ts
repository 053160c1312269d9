import { deepEqual } from "@spry/kube";
import { accountNameAnnotation, tokenSecretType } from "../../authentication/legacy-claims.ts";
import { maxDataBytes } from "../config-map/strategy.ts";
import { checkDataKeyName } from "../../resources/validation/data-key.ts";
import { type Strategy } from "../../resources/resource-type.ts";

interface Secret {
  type?: string;
  data?: Record<string, string>;
  stringData?: Record<string, string>;
  immutable?: boolean;
}

/** Keys that Secrets of a type must have. */
const requiredKeys = new Map([
  ["kubernetes.io/tls", ["tls.crt", "tls.key"]],
  ["kubernetes.io/dockerconfigjson", [".dockerconfigjson"]],
  ["kubernetes.io/dockercfg", [".dockercfg"]],
  ["kubernetes.io/ssh-auth", ["ssh-privatekey"]],
  ["kubernetes.io/basic-auth", ["username", "password"]],
]);

export const secretStrategy: Strategy = {
  selectableFields: ["type"],
  defaults(object) {
    const secret = object as Secret;
    secret.type ??= "Opaque";
    if (!secret.stringData) return;
    for (const [key, value] of Object.entries(secret.stringData)) {
      secret.data = { ...secret.data, [key]: Buffer.from(value).toString("base64") };
    }
    delete secret.stringData;
  },
  validate(object, errors, old) {
    const { type = "", data = {}, immutable } = object as Secret;
    let size = 0;
    for (const [key, value] of Object.entries(data)) {
      checkDataKeyName(key, `data[${key}]`, errors);
      size += value.length * 0.75;
    }
    if (size > maxDataBytes) errors.tooLong("data", maxDataBytes);
    const isLogin = type === "kubernetes.io/basic-auth";
    const missing = (requiredKeys.get(type) ?? []).filter((key) => data[key] === undefined);
    // One of the two is enough for a login.
    if (!isLogin || missing.length === 2)
      for (const key of missing) errors.required(`data[${key}]`);
    if (type === tokenSecretType && !object.metadata.annotations?.[accountNameAnnotation]) {
      errors.required(`metadata.annotations[${accountNameAnnotation}]`);
    }
    const before = old as Secret | undefined;
    if (!before) return;
    if (before.type !== type) errors.invalid("type", type, "field is immutable");
    if (before.immutable && (!immutable || !deepEqual(before.data, data))) {
      errors.forbidden("data", "field is immutable when `immutable` is set");
    }
  },
};
