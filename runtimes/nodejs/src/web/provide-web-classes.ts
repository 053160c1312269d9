import { runInThisContext } from "node:vm";
import { Request, toNativeRequest } from "./request.ts";
import { Response } from "./response.ts";

/**
 * Makes `Request` and `Response` in a Function's code ours. Those of Node.js cost 6 MB and as much time as the start
 * of the process as soon as they are first accessed, even to replace them: so these names are declared above the
 * global object, which keeps its own (`globalThis.Response`). A response may be of either class.
 */
export function provideWebClasses(): void {
  const declare = "let Request, Response; (a, b) => { Request = a; Response = b; }";
  (runInThisContext(declare) as (...classes: unknown[]) => void)(Request, Response);
  const nativeFetch = globalThis.fetch;
  const fetch = (input: unknown, init?: RequestInit) => nativeFetch(toNativeRequest(input), init);
  // Bundling may have given it another name.
  globalThis.fetch = Object.defineProperty(fetch, "name", { value: "fetch" });
}
