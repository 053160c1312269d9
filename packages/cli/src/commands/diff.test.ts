import { type UnknownObject } from "@spry/kube";
import { expect, test } from "vitest";
import { lineDiff } from "../line-diff.ts";
import { shown } from "./diff.ts";

const base64 = (text: string) => Buffer.from(text).toString("base64");
const secret = (password: string): UnknownObject => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: {
    name: "login",
    annotations: {
      note: "kept",
      "kubectl.kubernetes.io/last-applied-configuration": JSON.stringify({
        stringData: { password },
      }),
    },
  },
  data: { password: base64(password), user: base64("ann") },
});

test("of a Secret neither values nor what kubectl has noted of them are shown", () => {
  const text = shown(secret("hunter2"));
  expect(text).not.toContain("hunter2");
  expect(text).not.toContain(base64("hunter2"));
  expect(text).toContain("note: kept");
  expect(text).toContain("password:");
});

test("two values of a Secret differ, and one does not differ from itself", () => {
  expect(lineDiff(shown(secret("a")), shown(secret("a")))).toEqual([]);
  const lines = lineDiff(shown(secret("a")), shown(secret("b"))).filter((line) =>
    /^[+-]/.test(line),
  );
  expect(lines).toHaveLength(2);
  expect(lines.every((line) => line.includes("password: (not shown"))).toBe(true);
});
