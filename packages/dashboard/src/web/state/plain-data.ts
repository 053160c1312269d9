/** Whether YAML means what JSON can say, too. */

const maxDepth = 100;
/** A few lines with aliases can mean billions of values. */
const maxValues = 200_000;

/** Why a value cannot become an object of the API; undefined when it can. */
export function plainProblem(value: unknown): string | undefined {
  let values = 0;
  const problemIn = (each: unknown, depth: number): string | undefined => {
    values++;
    if (values > maxValues) return "this has too many values, perhaps by its aliases";
    if (depth > maxDepth)
      return `this is nested deeper than ${maxDepth} levels, or refers to itself`;
    if (typeof each === "number" && !Number.isFinite(each)) return `${each} cannot be stored`;
    if (typeof each === "bigint") return "this number is too large";
    if (typeof each !== "object" || each === null) return undefined;
    const isPlain =
      Array.isArray(each) || [Object.prototype, null].includes(Object.getPrototypeOf(each) as null);
    if (!isPlain) return "only texts, numbers, true, false, lists and maps can be stored";
    for (const child of Object.values(each)) {
      const problem = problemIn(child, depth + 1);
      if (problem !== undefined) return problem;
    }
    return undefined;
  };
  return problemIn(value, 0);
}
