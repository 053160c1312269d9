import { exposedUrl } from "../state/exposed-urls.ts";
import { CopyButton } from "./basics.tsx";

/** As a link, where its URL is known. */
export function ExposedHost({ host, domain }: { host: string; domain: string | undefined }) {
  const url = exposedUrl(host, domain);
  if (url === undefined) return <span class="mono">{host}</span>;
  return (
    <span class="url">
      <a href={url} target="_blank" rel="noreferrer" class="clip">
        {url}
      </a>
      <CopyButton text={url} label={`Copy the URL of ${host}`} />
    </span>
  );
}
