import { apiServiceColumns } from "../kinds/api-service/columns.ts";
import { clusterColumns, eventColumns } from "./cluster-columns.ts";
import { type Column, nameColumn } from "./column.ts";
import { networkColumns } from "./network-columns.ts";
import { workloadColumns } from "./workload-columns.ts";

const afterName: Record<string, Column[]> = {
  ...workloadColumns,
  ...networkColumns,
  ...clusterColumns,
  APIService: apiServiceColumns,
};

/** The columns of a built-in kind; undefined when it has but a name and an age. */
export function builtinColumnsOf(kind: string): Column[] | undefined {
  if (kind === "Event") return eventColumns;
  const columns = afterName[kind];
  return columns && [nameColumn, ...columns];
}
