/** One repository behind three Git servers, and what the tests ask of them. */
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type GitCredentials } from "../credentials.ts";
import { fetchSource, type FetchRequest } from "../fetch-source.ts";
import { resolveCommit } from "../resolve-commit.ts";
import { GitHttpServer } from "./git-http-server.ts";
import { TestRepository } from "./git-repository.ts";

export const login = { username: "ann", password: "p4ss w0rd'$(x)" };
export const basic = { type: "basic", ...login } as const satisfies GitCredentials;
/** The servers of these tests are on this machine. */
const allowed = ["127.0.0.0/8"];

export const urlOf = (server: GitHttpServer) => `${server.origin}/shop.git`;

export class ShopServers implements AsyncDisposable {
  readonly repository: TestRepository;
  readonly scratch = mkdtempSync(join(tmpdir(), "scratch-"));
  readonly commits: { first: string; feature: string; second: string };
  /** Lets everybody in, lets `login` in, and knows only version 1 of the protocol. */
  readonly open: GitHttpServer;
  readonly closed: GitHttpServer;
  readonly old: GitHttpServer;

  static async start(): Promise<ShopServers> {
    const repository = new TestRepository();
    const { root } = repository;
    return new ShopServers(repository, [
      await GitHttpServer.start({ root }),
      await GitHttpServer.start({ root, login }),
      await GitHttpServer.start({ root, isModern: false }),
    ]);
  }

  private constructor(
    repository: TestRepository,
    [open, closed, old]: [GitHttpServer, GitHttpServer, GitHttpServer],
  ) {
    this.repository = repository;
    this.commits = fill(repository);
    this.open = open;
    this.closed = closed;
    this.old = old;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of [this.open, this.closed, this.old]) await server[Symbol.asyncDispose]();
    this.repository[Symbol.dispose]();
    rmSync(this.scratch, { recursive: true });
  }

  /** The commit of a reference, by the open server unless a URL says otherwise. */
  resolve(
    reference: string,
    url = urlOf(this.open),
    credentials?: GitCredentials,
  ): Promise<string> {
    return resolveCommit({ url, reference, credentials }, { allowed });
  }

  /** Fetches into a directory of its own, and returns what is in it. */
  async fetched(request: Partial<FetchRequest> = {}): Promise<Record<string, string>> {
    const destination = mkdtempSync(join(this.scratch, "out-"));
    await fetchSource({
      url: urlOf(this.open),
      reference: "main",
      commit: this.commits.second,
      baseDir: "/",
      scratch: this.scratch,
      allowed,
      ...request,
      destination,
    });
    return contentsOf(destination);
  }
}

function fill(repository: TestRepository) {
  const first = repository.commit({
    "handler.js": "one",
    "functions/hello/handler.js": "hello one",
  });
  const feature = repository.commit({ "handler.js": "feature" }, "feature/a/b");
  repository.git(["tag", "light", first]);
  repository.git(["tag", "-a", "-m", "a release", "v1.0", first]);
  repository.git(["tag", "main", first]);
  const second = repository.commit({ "big.bin": randomText(3_000_000), "handler.js": "two" });
  repository.git(["update-ref", "refs/pull/7/head", feature]);
  return { first, feature, second };
}

function randomText(length: number): string {
  let state = 42;
  const next = () => (state = (state * 1_103_515_245 + 12_345) & 0x7fffffff);
  return Array.from({ length: length / 8 }, () => next().toString(16).padStart(8, "0")).join("");
}

export function contentsOf(directory: string): Record<string, string> {
  const found: Record<string, string> = {};
  // Links are not looked into: one may lead to a folder above.
  const visit = (folder: string) => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const file = join(folder, entry.name);
      if (entry.isDirectory()) visit(file);
      else
        found[file.slice(directory.length + 1)] = entry.isFile()
          ? readFileSync(file, "utf8").slice(0, 100)
          : `a link to ${readlinkSync(file)}`;
    }
  };
  visit(directory);
  return found;
}
