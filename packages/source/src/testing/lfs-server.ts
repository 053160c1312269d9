/** The batch API of Git LFS and its objects, in front of a Git server. */
import { createHash } from "node:crypto";
import { type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { type GitHttpServer } from "./git-http-server.ts";

export interface LfsQuestion {
  path: string;
  authorization: string | undefined;
  body: { operation: string; objects: { oid: string; size: number }[] };
}

export class LfsObjects {
  readonly questions: LfsQuestion[] = [];
  /** What was asked of the objects themselves: path and `authorization`. */
  readonly downloads: [path: string, authorization: string | undefined][] = [];
  readonly #contents = new Map<string, Buffer>();
  /** What an object's action says instead. */
  answer: ((oid: string) => object) | undefined;
  /** Answers in its place. */
  intercept: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined;

  /** The pointer, as it is in a commit. */
  add(content: string | Buffer): string {
    const bytes = Buffer.from(content);
    const oid = createHash("sha256").update(bytes).digest("hex");
    this.#contents.set(oid, bytes);
    return pointerTo(oid, bytes.length);
  }

  /** From now on the server has the API. */
  serve(server: GitHttpServer): void {
    server.intercept = (request, response) => {
      const { pathname } = new URL(request.url ?? "", server.origin);
      if (this.intercept?.(request, response)) return true;
      if (pathname.endsWith("/objects/batch")) {
        void this.#answer(request, response, server.origin);
        return true;
      }
      const oid = /^\/objects\/(\w+)$/.exec(pathname)?.[1];
      if (oid === undefined) return false;
      this.downloads.push([pathname, request.headers.authorization]);
      const content = this.#contents.get(oid);
      if (content) response.end(content);
      else response.writeHead(404).end();
      return true;
    };
  }

  async #answer(request: IncomingMessage, response: ServerResponse, origin: string): Promise<void> {
    const body = JSON.parse(await text(request)) as LfsQuestion["body"];
    const { url: path = "", headers } = request;
    this.questions.push({ path, authorization: headers.authorization, body });
    const objects = body.objects.map(({ oid, size }) => {
      const action = { actions: { download: { href: `${origin}/objects/${oid}` } } };
      const absent = { error: { code: 404, message: "gone" } };
      const usual = this.#contents.has(oid) ? action : absent;
      return { oid, size, ...(this.answer?.(oid) ?? usual) };
    });
    response.writeHead(200, { "content-type": "application/vnd.git-lfs+json" });
    response.end(JSON.stringify({ transfer: "basic", objects }));
  }
}

export const pointerTo = (oid: string, size: number): string =>
  `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${size}\n`;
