import { type Remarks } from "@spry/controller";
import { type DefinitionOwner } from "@spry/exposure";

/** Says in the Serverless object's status that APIRules are another installation's to serve. */
export function remarkDefinitionOwner(remarks: Remarks, owner: DefinitionOwner): void {
  const other =
    "APIRules are defined by another installation (Kyma's API Gateway module): they are left to it";
  remarks.set("exposure", owner === "other" ? other : undefined);
}
