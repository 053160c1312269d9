import { type Failure } from "../load-failure.ts";

const escape = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/**
 * What a browser shows instead of the Function. `follows`: it loads itself again until the code can be loaded; what a handler
 * threw is not asked for again, as that would call the handler each time.
 */
export function failurePage({ summary, details }: Failure, follows: boolean): string {
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escape(summary)}</title>
<style>
  :root { color-scheme: light dark }
  body { font: 16px/1.5 system-ui, sans-serif; margin: 3rem auto; max-width: 60rem; padding: 0 1rem }
  h1 { font-size: 1.25rem; border-left: .25rem solid #d33; padding-left: .75rem; overflow-wrap: anywhere }
  pre { background: #8882; padding: 1rem; overflow-x: auto; font-size: .85rem; border-radius: .25rem }
</style>
<h1>${escape(summary)}</h1>
<pre>${escape(details)}</pre>
${follows ? following : "<p>The handler threw this. Save a correction, and load the page again.</p>"}
</html>
`;
}

const following = `<p>The code cannot be loaded. Save a correction: this page follows.</p>
<script>
  setInterval(async () => {
    try {
      const response = await fetch(location.href, { method: "HEAD", headers: { accept: "text/html" } });
      if (response.status !== 500) location.reload();
    } catch {}
  }, 1000);
</script>`;
