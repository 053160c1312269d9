import { type CleaningResult } from "./cleaning.ts";
import { type Stores } from "./exchange.ts";

/** The registry's metrics, in Prometheus' text exposition format 0.0.4. */
export class RegistryMetrics {
  readonly #stores: Stores;
  /** Answers by method and status. */
  readonly #requests = new Map<string, number>();
  readonly #cleaned: CleaningResult = { manifests: 0, blobs: 0, bytes: 0 };
  #cleanings = { success: 0, error: 0 };

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  answered(method: string | undefined, status: number): void {
    // Any client may invent methods; they must not fill the memory.
    const known = ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"].includes(method ?? "");
    const labels = `method="${known ? method : "other"}",code="${status}"`;
    this.#requests.set(labels, (this.#requests.get(labels) ?? 0) + 1);
  }

  cleaned(result: CleaningResult | undefined): void {
    if (!result) return void this.#cleanings.error++;
    this.#cleanings.success++;
    this.#cleaned.manifests += result.manifests;
    this.#cleaned.blobs += result.blobs;
    this.#cleaned.bytes += result.bytes;
  }

  render(): string {
    const { quota, uploads } = this.#stores;
    const { manifests, blobs, bytes } = this.#cleaned;
    const { success, error } = this.#cleanings;
    return [
      ...metric("storage_bytes", "gauge", "Bytes of stored content.", { "": quota.stored }),
      ...metric("storage_quota_bytes", "gauge", "Bytes that may be stored.", { "": quota.limit }),
      ...metric("blobs", "gauge", "Stored blobs, manifests among them.", { "": quota.blobs }),
      ...metric("uploads", "gauge", "Uploads that have not ended.", { "": uploads.count }),
      ...metric("upload_bytes", "gauge", "Bytes of these uploads.", { "": quota.incoming }),
      ...metric(
        "requests_total",
        "counter",
        "Answered requests.",
        Object.fromEntries(this.#requests),
      ),
      ...metric("cleanings_total", "counter", "Cleanings.", {
        'result="success"': success,
        'result="error"': error,
      }),
      ...metric("cleaned_manifests_total", "counter", "Removed manifests.", { "": manifests }),
      ...metric("cleaned_blobs_total", "counter", "Removed blobs.", { "": blobs }),
      ...metric("cleaned_bytes_total", "counter", "Bytes of removed blobs.", { "": bytes }),
      "",
    ].join("\n");
  }
}

function metric(
  name: string,
  type: "gauge" | "counter",
  help: string,
  values: Record<string, number>,
): string[] {
  const full = `spry_registry_${name}`;
  const samples = Object.entries(values).map(
    ([labels, value]) => `${full}${labels === "" ? "" : `{${labels}}`} ${value}`,
  );
  return [`# HELP ${full} ${help}`, `# TYPE ${full} ${type}`, ...samples];
}
