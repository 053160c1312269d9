import { type FunctionRequest } from "./function-request.ts";

/** Whether the request says that it is part of a trace, by W3C or B3: most are of none. */
export function isTraced({ headers }: FunctionRequest): boolean {
  return (
    headers["traceparent"] !== undefined ||
    headers["x-b3-traceid"] !== undefined ||
    headers["b3"] !== undefined
  );
}
