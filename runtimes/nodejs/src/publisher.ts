/** What became of a published event, in the shape that Functions know from axios. */
export interface PublishResult {
  status: number;
  statusText: string;
  headers: Record<string, string>;
  data: unknown;
}

/** Publishes CloudEvents, structured, to where the platform takes them. */
export class Publisher {
  readonly #address: string;

  constructor(address: string) {
    this.#address = address;
  }

  /** Builds an event around the data and publishes it; rejects unless the answer is a success. */
  emit(
    type: string,
    source: string,
    data: unknown,
    attributes: Record<string, unknown> = {},
  ): Promise<PublishResult> {
    return this.publish({
      specversion: "1.0",
      id: crypto.randomUUID(),
      time: new Date().toISOString(),
      datacontenttype: contentTypeOf(data),
      ...attributes,
      type,
      source,
      ...(data instanceof Uint8Array
        ? { data_base64: Buffer.from(data).toString("base64") }
        : { data }),
    });
  }

  /** Publishes a complete event. */
  async publish(event: unknown): Promise<PublishResult> {
    if (!this.#address) throw new Error("publishing an event: PUBLISHER_PROXY_ADDRESS is not set");
    const response = await fetch(this.#address, {
      method: "POST",
      headers: { "content-type": "application/cloudevents+json" },
      body: JSON.stringify(event),
    }).catch((cause: unknown) => {
      throw new Error(`publishing an event to ${this.#address}`, { cause });
    });
    const { status, statusText } = response;
    const text = await response.text();
    const result = {
      status,
      statusText,
      headers: Object.fromEntries(response.headers),
      data: parsed(text),
    };
    if (response.ok) return result;
    const error = new Error(
      `publishing an event to ${this.#address}: ${status} ${text.slice(0, 200)}`.trim(),
    );
    throw Object.assign(error, { status, response: result });
  }
}

/** What a Function publishes with; the same functions for every event, which need no `this`. */
export function publishingWith(publisher: Publisher) {
  return {
    emitCloudEvent: (
      type: string,
      source: string,
      data: unknown,
      attributes?: Record<string, unknown>,
    ) => publisher.emit(type, source, data, attributes),
    publishCloudEvent: (event: unknown) => publisher.publish(event),
  };
}

export type Publishing = ReturnType<typeof publishingWith>;

/** As the contract says: objects are JSON, strings plain text. */
export function contentTypeOf(data: unknown): string {
  if (data instanceof Uint8Array) return "application/octet-stream";
  return typeof data === "object" ? "application/json" : "text/plain";
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
