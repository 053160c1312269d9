import { ageColumn, type Column, column } from "../../table/column.ts";
import { type ApiService, availabilityOf } from "./api-service.ts";

export const apiServiceColumns: Column[] = [
  {
    ...column<ApiService>("Service", ({ spec: { service } }) =>
      service ? `${service.namespace}/${service.name}` : "Local",
    ),
    description: "The reference to the service that hosts this API endpoint.",
  },
  {
    ...column<ApiService>("Available", (object) => {
      const { status, reason } = availabilityOf(object) ?? { status: "Unknown" };
      return status === "True" || !reason ? status : `${status} (${reason})`;
    }),
    description: "Whether this service is available.",
  },
  ageColumn,
];
