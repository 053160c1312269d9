import { type ListItems } from "./list-text.ts";
import { parseJson } from "../json.ts";
import { dumpYaml } from "@spry/kube";

/** The YAML of a list, item by item. `list` has no items, or rows, yet. */
export function* yamlOfList(list: object, items: ListItems): Generator<string> {
  const name = "rows" in list ? "rows" : "items";
  const fields = Object.entries(list).filter(([key]) => key !== name);
  const part = (isBefore: boolean) => {
    const some = fields.filter(([key]) => key < name === isBefore);
    return some.length > 0 ? dumpYaml(Object.fromEntries(some), { isSorted: true }) : "";
  };
  yield part(true);
  yield items.count > 0 ? `${name}:\n` : `${name}: []\n`;
  for (let index = 0; index < items.count; index++)
    yield dumpYaml([parseJson(items.at(index))], { isSorted: true });
  yield part(false);
}
