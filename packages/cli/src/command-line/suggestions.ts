/** What a shell may complete an option's or an argument's value to, where its name alone does not say so. */
import { type Argument, type Option } from "commander";

/** Fixed values, or a list in a part of the program that is loaded only for it. */
export type Suggestions = readonly string[] | (() => Promise<readonly string[]>);

const suggestions = new WeakMap<object, Suggestions>();

/** The same option or argument, with the values that completion offers for it. They are not checked: others may be valid. */
export function suggesting<T extends Option | Argument>(parameter: T, values: Suggestions): T {
  suggestions.set(parameter, values);
  return parameter;
}

/** The values of an option or argument; none where any text will do. */
export async function suggestionsFor(parameter: Option | Argument): Promise<readonly string[]> {
  const values = suggestions.get(parameter) ?? parameter.argChoices ?? [];
  return typeof values === "function" ? values() : values;
}
