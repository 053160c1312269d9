import { type StatusCause, StatusError } from "@spry/kube";
import { FieldErrors } from "./field-errors.ts";

interface Named {
  group: string;
  plural: string;
}

function qualified({ group, plural }: Named): string {
  return group ? `${plural}.${group}` : plural;
}

function detailsOf(resource: Named, name: string) {
  return { name, ...(resource.group && { group: resource.group }), kind: resource.plural };
}

export function notFound(resource: Named, name: string): StatusError {
  return new StatusError({
    code: 404,
    message: `${qualified(resource)} "${name}" not found`,
    details: detailsOf(resource, name),
  });
}

export function alreadyExists(resource: Named, name: string, isBeingDeleted = false): StatusError {
  return new StatusError({
    code: 409,
    reason: "AlreadyExists",
    message: `${isBeingDeleted ? "object is being deleted: " : ""}${qualified(resource)} "${name}" already exists`,
    details: detailsOf(resource, name),
  });
}

export function conflict(resource: Named, name: string, cause = staleObject): StatusError {
  return new StatusError({
    code: 409,
    message: `Operation cannot be fulfilled on ${qualified(resource)} "${name}": ${cause}`,
    details: detailsOf(resource, name),
  });
}

const staleObject =
  "the object has been modified; please apply your changes to the latest version and try again";

export function forbidden(
  resource: Named,
  name: string,
  cause: string,
  causes: StatusCause[] = [],
): StatusError {
  return new StatusError({
    code: 403,
    message: `${qualified(resource)} "${name}" is forbidden: ${cause}`,
    details: { ...detailsOf(resource, name), ...(causes.length > 0 && { causes }) },
  });
}

/** An option of the request has a value that is not allowed, reported as a field of `CreateOptions` and the like. */
export function invalidOptions(kind: string, report: (errors: FieldErrors) => void): StatusError {
  return invalidObject(kind, "meta.k8s.io", "", report);
}

/** What is reported about an object, as a `StatusError` 422. */
export function invalidObject(
  kind: string,
  group: string,
  name: string,
  report: (errors: FieldErrors) => void,
): StatusError {
  const errors = new FieldErrors();
  report(errors);
  try {
    errors.throwIfAny(kind, group, name);
  } catch (error) {
    if (error instanceof StatusError) return error;
    throw error;
  }
  throw new Error(`${kind}: nothing was reported to be invalid`);
}

/** A failure that Kubernetes gives no reason for: its text alone. */
export function plainFailure(message: string, options?: ErrorOptions): StatusError {
  const error = new StatusError({ code: 500, message }, options);
  delete error.status.reason;
  return error;
}

export function badRequest(message: string, options?: ErrorOptions): StatusError {
  return new StatusError({ code: 400, message }, options);
}

/** Something that is neither the client's fault nor a refusal; the message includes the cause. */
export function internalError(cause: string, options?: ErrorOptions): StatusError {
  const message = `Internal error occurred: ${cause}`;
  return new StatusError(
    { code: 500, message, details: { causes: [{ message: cause }] } },
    options,
  );
}

/** kubectl knows this sentence by heart. */
export function unknownPath(): StatusError {
  return new StatusError({
    code: 404,
    message: "the server could not find the requested resource",
    details: {},
  });
}

export function methodNotAllowed(): StatusError {
  return new StatusError({
    code: 405,
    message: "the server does not allow this method on the requested resource",
    details: {},
  });
}

export function gone(since: number, oldest: number): StatusError {
  return new StatusError({
    code: 410,
    message: `too old resource version: ${since} (${oldest})`,
  });
}

/** The message of an error alone: its causes are in that text already, or must not be shown. */
export function ownMessageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
