import { escaped, page } from "./html.ts";

/** What the user can do about the gateway's own errors, by their reason. */
const wayOut: Readonly<Record<string, string>> = {
  UnknownHost: "<code>spry get</code> lists the URLs of all Functions.",
  FunctionNotFound: "<code>spry get -A</code> lists all Functions.",
};

/** An error as a page; it says no more than `message` does. */
export function errorPage(status: number, reason: string, message: string): string {
  const more =
    wayOut[reason] ??
    (status >= 500
      ? "<code>spry describe NAME</code> and <code>spry logs NAME</code> show more."
      : "");
  return page(`${status} ${reason}`, `<p>${escaped(message)}</p>${more ? `\n<p>${more}</p>` : ""}`);
}
