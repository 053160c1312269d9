import { deepEqual } from "@spry/kube";
import { charge } from "../cel-meter.ts";
import { CelNamespace, type Library } from "./library.ts";

class SetNames extends CelNamespace {}

type List = readonly unknown[];

function includes(list: List, item: unknown): boolean {
  return list.some((each) => each === item || deepEqual(each, item));
}

function contains(list: List, part: List): boolean {
  charge(list.length * part.length);
  return part.every((each) => includes(list, each));
}

/** Lists taken as sets (`cel-go/ext/sets.go`). */
export const sets: Library = {
  types: { "cel.SetNames": SetNames },
  constants: { sets: { type: "cel.SetNames", value: new SetNames() } },
  functions: [
    [
      "cel.SetNames.contains(list, list): bool",
      (_: SetNames, list: List, part: List) => contains(list, part),
    ],
    [
      "cel.SetNames.equivalent(list, list): bool",
      (_: SetNames, a: List, b: List) => contains(a, b) && contains(b, a),
    ],
    [
      "cel.SetNames.intersects(list, list): bool",
      (_: SetNames, a: List, b: List) => {
        charge(a.length * b.length);
        return a.some((each) => includes(b, each));
      },
    ],
  ],
};
