/** Starts Functions that call each other by the names which they have on the platform. */
import { type Target } from "../project/targets.ts";
import { UserError } from "../user-error.ts";
import { type DevFunction } from "./dev-function.ts";

/** All at once; returns which others they can call. `named`: neighbours that the user names. */
export async function startAll(
  all: readonly DevFunction[],
  {
    targets,
    named = [],
  }: {
    targets: readonly Pick<Target, "found">[];
    named?: readonly string[] | undefined;
  },
): Promise<string[]> {
  const isAlone = all.length === 1;
  // Before any code is compiled, which is done with the same tool.
  for (const [index, each] of all.entries()) {
    const found = targets[index]?.found;
    if (found && !(found instanceof UserError)) await each.prepare(found.runtime);
  }
  const own = all.map(({ name, namespace }) => `${name}.${namespace}`);
  const siblings = isAlone
    ? []
    : all.map(({ url }, index) => `${own[index]}=${url.replace("localhost", "127.0.0.1")}`);
  const found = await Promise.all(all.map((each) => each.start([...siblings, ...named], isAlone)));
  return [...new Set(found.flat())].filter((name) => isAlone || !own.includes(name));
}
