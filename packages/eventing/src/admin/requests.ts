import { type AdminRequest } from "./admin-handler.ts";
import { Problem } from "./problem.ts";

export const label = "[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?";
export const inNamespace = `^/v1/namespaces/(?<namespace>${label})`;
export const maxLimit = 500;
const defaultLimit = 100;

export function numberOf(text: string, name: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new Problem(400, `${name} is not a number`);
}

export function limitOf({ query }: Pick<AdminRequest, "query">): number {
  const limit = numberOf(query.get("limit") ?? String(defaultLimit), "limit");
  if (limit >= 1 && limit <= maxLimit) return limit;
  throw new Problem(400, `limit must be from 1 to ${maxLimit}`);
}
