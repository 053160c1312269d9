/** Pages of the gateway's own, for browsers: no scripts, nothing from elsewhere. */
import { type IncomingHttpHeaders } from "node:http";

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};
export const escaped = (text: string): string =>
  text.replaceAll(/[&<>"']/g, (each) => entities[each] ?? each);

interface Asking {
  headers: IncomingHttpHeaders;
}

/** Browsers ask for pages; programs for JSON, or for anything. */
export function wantsPage({ headers: { accept = "" } }: Asking): boolean {
  const page = accept.indexOf("text/html");
  const json = accept.indexOf("json");
  return page >= 0 && (json < 0 || page < json);
}

export const pageHeaders: Readonly<Record<string, string>> = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy":
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
};

/** `title` is text, `body` HTML. */
export const page = (title: string, body: string): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escaped(title)}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 3rem auto; padding: 0 1rem; }
@media (prefers-color-scheme: dark) { body { background: #111; color: #ddd } a { color: #8bf } }
table { border-collapse: collapse } td, th { text-align: left; padding: .2rem 1.5rem .2rem 0 }
code { background: #8882; padding: .1rem .3rem; border-radius: .2rem }
</style>
<h1>${escaped(title)}</h1>
${body}
</html>
`;
