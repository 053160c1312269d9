import { type Column } from "./columns.ts";

/** Kind → its columns after the name. */
export const builtinColumns: Record<string, Column[]> = {};
