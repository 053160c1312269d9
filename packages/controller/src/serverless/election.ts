import { type Serverless } from "./types.ts";

/**
 * Which of several objects is in effect: the first that got served stays so; when there is none, the oldest that
 * is not being deleted (docs/compatibility.md#serverless-object). Only those in the platform's own `namespace` count:
 * who may write some namespace's objects may not configure the platform for everybody.
 */
export function servedOf(all: readonly Serverless[], namespace: string): Serverless | undefined {
  const eligible = all.filter(({ metadata }) => metadata.namespace === namespace);
  const served = eligible.filter(({ status }) => status?.served === "True");
  const [first] = (served.length > 0 ? served : eligible).toSorted(byAge);
  return first;
}

function byAge(a: Serverless, b: Serverless): number {
  const age = ({ metadata }: Serverless) => `${metadata.creationTimestamp} ${metadata.name}`;
  const dying = ({ metadata }: Serverless) => (metadata.deletionTimestamp ? 1 : 0);
  return dying(a) - dying(b) || (age(a) < age(b) ? -1 : 1);
}
