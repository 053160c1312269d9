/**
 * Whose requests a server on the user's own machine answers. Any page in a browser can send requests to a local port, and with a
 * name of its own that leads there (DNS rebinding) it may read the responses, too: such a page is recognized by the name in `Host`.
 */
import { isIP } from "node:net";
import { UserError } from "../user-error.ts";

/** The name in a `Host` header (RFC 9110 section 7.2), in lower case, without port and final dot; undefined if it is none. */
export function hostNameOf(header: string | undefined): string | undefined {
  const match = /^(\[[\da-f:.]+\]|[^\s:/?#@[\]\\]+)(?::\d{1,5})?$/i.exec(header ?? "");
  return match?.[1]?.toLowerCase().replace(/\.$/, "");
}

export class AllowedHosts {
  readonly #names: ReadonlySet<string>;

  /** `names`: those that the user adds to the machine's own. */
  constructor(names: readonly string[] = []) {
    this.#names = new Set(
      names.map((name) => {
        const host = hostNameOf(isIP(name) === 6 ? `[${name}]` : name);
        if (host === undefined)
          throw new UserError(
            `${name} is not a valid host name`,
            "write --allow-host NAME, for example --allow-host shop.example",
          );
        return host;
      }),
    );
  }

  /** Whether a request with this `Host` is answered: for `localhost`, names below it, loopback addresses, and those added. */
  allows(header: string | undefined): boolean {
    const name = hostNameOf(header);
    if (name === undefined) return false;
    return (
      /^(?:.+\.)?localhost$/.test(name) ||
      name === "127.0.0.1" ||
      name === "[::1]" ||
      this.#names.has(name)
    );
  }

  /** Whether a page of this `Origin` may open a WebSocket, which browsers let pages of every origin do (RFC 6455 section 10.2). */
  allowsOrigin(origin: string | undefined): boolean {
    // Programs other than browsers send none.
    if (origin === undefined) return true;
    return URL.canParse(origin) && this.allows(new URL(origin).host);
  }
}
