/** Newest first, stable before beta before alpha: the first one is preferred. */
export function versionsOf(types: { version: string; versionPriority?: number }[]): string[] {
  const weights = new Map(types.map((each) => [each.version, each.versionPriority ?? ownPriority]));
  const weight = (version: string) => weights.get(version) ?? 0;
  return [...weights.keys()].sort(
    (a, b) => weight(b) - weight(a) || priority(b) - priority(a) || (a < b ? -1 : 1),
  );
}

/** The priority of groups of custom resources, which may have versions of other servers, too. */
const ownPriority = 100;

function priority(version: string): number {
  const match = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version);
  if (!match) return -1;
  const [, major, stage, minor] = match;
  const stability = stage === undefined ? 2 : stage === "beta" ? 1 : 0;
  return stability * 1e6 + Number(major) * 1e3 + Number(minor ?? 0);
}
