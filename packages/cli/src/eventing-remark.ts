import { type Remarks } from "@spry/controller";
import { type DefinitionOwner } from "@spry/eventing";

/** Says in the Serverless object's status that another installation serves Subscriptions. */
export function remarkEventingOwner(remarks: Remarks, owner: DefinitionOwner): void {
  const other =
    "Subscriptions are defined by another installation (Kyma's Eventing module): they are left to it";
  remarks.set("eventing", owner === "other" ? other : undefined);
}

/** Says that the Service that Functions publish to leads to another installation. */
export function remarkPublisher(remarks: Remarks, isForeign: boolean): void {
  const other =
    "the Service eventing-publisher-proxy belongs to another installation (Kyma's Eventing module): it is left as it is";
  remarks.set("publisher", isForeign ? other : undefined);
}
