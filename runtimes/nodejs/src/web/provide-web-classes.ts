import { runInThisContext } from "node:vm";
import { Request, toNativeRequest } from "./request.ts";
import { Response } from "./response.ts";

/**
 * Makes `Request` and `Response` in a Function's code ours. Node.js' own cost 6 MB and as much time as
 * starting does, as soon as anybody looks at them, even to replace them: so these names are declared
 * above the global object, which keeps its own (`globalThis.Response`). An answer may be of either.
 */
export function provideWebClasses(): void {
  const declare = "let Request, Response; (a, b) => { Request = a; Response = b; }";
  (runInThisContext(declare) as (...classes: unknown[]) => void)(Request, Response);
  const nativeFetch = globalThis.fetch;
  const fetch = (input: unknown, init?: RequestInit) => nativeFetch(toNativeRequest(input), init);
  // Bundling may have given it another name.
  globalThis.fetch = Object.defineProperty(fetch, "name", { value: "fetch" });
}
