import { type UnknownObject } from "@spry/kube";
import { ageColumn, column, type Column } from "../../table/column.ts";

export const controllerRevisionColumns: Column[] = [
  column("Controller", ({ metadata }: UnknownObject) => {
    const owner = metadata.ownerReferences?.find((each) => each.controller);
    return owner && `${owner.kind.toLowerCase()}/${owner.name}`;
  }),
  column("Revision", ({ revision }: UnknownObject) => revision as number),
  ageColumn,
];
