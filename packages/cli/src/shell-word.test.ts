import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { shellWord } from "./shell-word.ts";

test.each(["/home/ann/.spry/kubeconfig", "/home/ann/my files/ü", "it's", '$HOME `id` "x" \\', ""])(
  "a shell reads %j as it was",
  (text) => {
    const printed = execFileSync("/bin/sh", ["-c", `printf %s ${shellWord(text)}`]).toString();
    expect(printed).toBe(text);
  },
);

test("a plain path stays plain", () => {
  expect(shellWord("/home/ann/.spry/kubeconfig")).toBe("/home/ann/.spry/kubeconfig");
});
