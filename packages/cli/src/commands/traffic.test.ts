import { type TrafficShare } from "@spry/function";
import { expect, test } from "vitest";
import { parseShares, withTags } from "./traffic.ts";

test.each<[string, TrafficShare[]]>([
  ["latest", [{ latest: true, percent: 100 }]],
  ["3", [{ revision: 3, percent: 100 }]],
  [
    "3=90,latest=10",
    [
      { revision: 3, percent: 90 },
      { latest: true, percent: 10 },
    ],
  ],
  [
    " 3=50% , 4=50% ",
    [
      { revision: 3, percent: 50 },
      { revision: 4, percent: 50 },
    ],
  ],
])("%s", (text, shares) => {
  expect(parseShares(text)).toEqual(shares);
});

test.each(["", "newest=100", "0=100", "3=", "3=1=2", "3,4", "3=1.5", "-1=100", "3=90,"])(
  "%j is refused with an example",
  (text) => {
    expect(() => parseShares(text)).toThrow(/is not a valid share of traffic/);
  },
);

test("tags go to their revisions' shares, or get shares of nothing", () => {
  const shares = parseShares("3=90,latest=10");
  expect(withTags(shares, ["3=old", "latest=new", "2=older"])).toEqual([
    { revision: 3, percent: 90, tag: "old" },
    { latest: true, percent: 10, tag: "new" },
    { revision: 2, percent: 0, tag: "older" },
  ]);
  expect(() => withTags(shares, ["old"])).toThrow(/is not a valid tag of a version/);
});
