import { type Lease } from "@spry/kube";
import { ageColumn, column, type Column } from "../../table/column.ts";

export const leaseColumns: Column[] = [
  column<Lease>("Holder", (lease) => lease.spec?.holderIdentity),
  ageColumn,
];
