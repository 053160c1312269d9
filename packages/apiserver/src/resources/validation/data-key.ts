import { type FieldErrors } from "../../field-errors.ts";

const maxLength = 253;
const rule =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

/** Keys of ConfigMaps and Secrets become file names. */
export function checkDataKeyName(key: string, path: string, errors: FieldErrors): void {
  if (key.length > maxLength)
    errors.invalid(path, key, `must be no more than ${maxLength} characters`);
  if (!/^[-._a-zA-Z0-9]+$/.test(key)) errors.invalid(path, key, rule);
  else if (key === ".") errors.invalid(path, key, "must not be '.'");
  else if (key === "..") errors.invalid(path, key, "must not be '..'");
  else if (key.startsWith("..")) errors.invalid(path, key, "must not start with '..'");
}
