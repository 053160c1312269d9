import { type Function, functions, type TrafficShare, validateFunction } from "@spry/function";
import { type KubeClient } from "@spry/kube";
import { connect, type GlobalOptions } from "../connection.ts";
import { findFunction, findHistory } from "../find-function.ts";
import { printableJson } from "../printable-json.ts";
import { UserError } from "../user-error.ts";

export interface TrafficOptions extends GlobalOptions {
  /** `<share>=<tag>` each. */
  tag?: string[];
  /** `json`: the shares as `spec.traffic` has them. */
  output?: string;
}

const usage = "write shares as in `spry traffic dice 3=90,latest=10`, tags as in `--tag 3=old`";

/**
 * Shows or sets which revisions of a Function get which share of its requests. Without shares, the present ones are
 * printed; `latest` alone is `latest=100`, which is also what a Function without `spec.traffic` means.
 */
export async function traffic(
  name: string,
  shares: string | undefined,
  options: TrafficOptions,
): Promise<void> {
  const { client, namespace } = await connect(options);
  const fn = await findFunction(client, namespace, name);
  const print = (shown: Function) =>
    console.log(options.output === "json" ? printableJson(present(shown), 2) : describe(shown));
  if (shares === undefined && !options.tag?.length) return print(fn);
  const wanted = withTags(shares === undefined ? present(fn) : parseShares(shares), options.tag);
  const changed = { ...fn, spec: { ...fn.spec, traffic: wanted } };
  const [error] = validateFunction(changed).filter(({ path }) => path.startsWith("spec.traffic"));
  if (error) throw new UserError(error.message, usage);
  await assertKnown(client, fn, wanted);
  const patch = { spec: { traffic: isDefault(wanted) ? null : wanted } };
  const stored = await client.patch(functions, { namespace, name }, patch, {
    fieldManager: "spry-cli",
  });
  print(stored);
}

/** The Function would fail with the others as well, where one of the shares leads nowhere. */
async function assertKnown(
  client: KubeClient,
  fn: Function,
  shares: readonly TrafficShare[],
): Promise<void> {
  const named = shares.flatMap(({ revision }) => revision ?? []);
  if (named.length === 0) return;
  const known = (await findHistory(client, fn)).map(({ revision }) => revision);
  const unknown = named.find((revision) => !known.includes(revision));
  if (unknown === undefined) return;
  const { name = "" } = fn.metadata;
  throw new UserError(
    `Function ${name} has no version ${unknown}; it has ${known.join(", ")}`,
    `\`spry history ${name}\` lists them`,
  );
}

/** `3=90,latest=10`, or `3` for all of it. */
export function parseShares(text: string): TrafficShare[] {
  const parts = text.split(",");
  return parts.map((part) => {
    const [which = "", percent, ...rest] = part.trim().split("=");
    const share = shareOf(which);
    const value = percent === undefined && parts.length === 1 ? 100 : percentOf(percent);
    if (!share || rest.length > 0 || !Number.isInteger(value)) {
      throw new UserError(`${part} is not a valid share of traffic`, usage);
    }
    return { ...share, percent: value };
  });
}

/** A tag for a revision that has no share yet adds it with none: its host alone leads there. */
export function withTags(shares: TrafficShare[], tags: readonly string[] = []): TrafficShare[] {
  const result = shares.map((share) => ({ ...share }));
  for (const text of tags) {
    const [which = "", tag = "", ...rest] = text.split("=");
    const share = shareOf(which);
    if (!share || tag === "" || rest.length > 0) {
      throw new UserError(`${text} is not a valid tag of a version`, usage);
    }
    const same = result.find(({ revision, tag: taken }) => revision === share.revision && !taken);
    if (same) same.tag = tag;
    else result.push({ ...share, percent: 0, tag });
  }
  return result;
}

function percentOf(text = ""): number {
  const [, digits] = /^(\d{1,3})%?$/.exec(text) ?? [];
  return Number(digits);
}

function shareOf(which: string): TrafficShare | undefined {
  if (which === "latest") return { latest: true };
  return /^[1-9]\d{0,8}$/.test(which) ? { revision: Number(which) } : undefined;
}

const present = ({ spec }: Function): TrafficShare[] =>
  spec.traffic?.length ? spec.traffic : [{ latest: true, percent: 100 }];

function isDefault([only, ...rest]: readonly TrafficShare[]): boolean {
  return rest.length === 0 && only?.latest === true && only.tag === undefined;
}

function describe(fn: Function): string {
  const rows = present(fn).map(({ revision, percent = 0, tag }) => {
    const which = revision === undefined ? "latest" : `version ${revision}`;
    return `${String(percent).padStart(3)} %  ${which}${tag ? `  (tag ${tag})` : ""}`;
  });
  return rows.join("\n");
}
