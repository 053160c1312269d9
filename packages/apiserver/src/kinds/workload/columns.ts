import { type Deployment, type ReplicaSet } from "@spry/kube";
import { ageColumn, column, type Column, integer } from "../../table/column.ts";
import { containerColumns, selectorColumn } from "./template-columns.ts";

export const deploymentColumns: Column[] = [
  column<Deployment>(
    "Ready",
    ({ spec, status }) => `${status?.readyReplicas ?? 0}/${spec?.replicas ?? 0}`,
  ),
  column<Deployment>("Up-to-date", ({ status }) => status?.updatedReplicas ?? 0),
  column<Deployment>("Available", ({ status }) => status?.availableReplicas ?? 0),
  ageColumn,
  ...containerColumns,
  selectorColumn,
];

export const replicaSetColumns: Column[] = [
  column<ReplicaSet>("Desired", ({ spec }) => spec?.replicas ?? 0, integer),
  column<ReplicaSet>("Current", ({ status }) => status?.replicas ?? 0, integer),
  column<ReplicaSet>("Ready", ({ status }) => status?.readyReplicas ?? 0, integer),
  ageColumn,
  ...containerColumns,
  selectorColumn,
];
