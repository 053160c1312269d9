import { Remarks } from "@spry/controller";
import { expect, test } from "vitest";
import { remarkDefinitionOwner } from "./exposure-remark.ts";

test("operators read whose APIRules are as long as they are another installation's", () => {
  const remarks = new Remarks();
  remarkDefinitionOwner(remarks, "missing");
  expect(remarks.list()).toEqual([]);
  remarkDefinitionOwner(remarks, "other");
  expect(remarks.list()).toEqual([
    "APIRules are defined by another installation (Kyma's API Gateway module): they are left to it",
  ]);
  remarkDefinitionOwner(remarks, "ours");
  expect(remarks.list()).toEqual([]);
});
