/** A Function's name: that of a Service, too. */
import { UserError } from "../user-error.ts";

/** @throws UserError for a name that a Function cannot have */
export function checkedName(name: string): string {
  if (name.length <= 63 && /^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(name)) return name;
  throw new UserError(
    `${name || '""'} is not a valid name of a Function`,
    "use at most 63 lower-case letters, digits and hyphens, with a letter first",
  );
}
