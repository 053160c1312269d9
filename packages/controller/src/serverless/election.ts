import { type Serverless } from "./types.ts";

/**
 * Which of several objects is in effect: the first that got served stays so; when there is none, the oldest that
 * is not being deleted (docs/compatibility.md#serverless-object).
 */
export function servedOf(all: readonly Serverless[]): Serverless | undefined {
  const served = all.filter(({ status }) => status?.served === "True");
  const [first] = (served.length > 0 ? served : all).toSorted(byAge);
  return first;
}

function byAge(a: Serverless, b: Serverless): number {
  const age = ({ metadata }: Serverless) =>
    `${metadata.creationTimestamp} ${metadata.namespace}/${metadata.name}`;
  const dying = ({ metadata }: Serverless) => (metadata.deletionTimestamp ? 1 : 0);
  return dying(a) - dying(b) || (age(a) < age(b) ? -1 : 1);
}
