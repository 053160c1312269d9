/** A bare repository on this machine's disk, for servers in tests. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const identity = { name: "A Tester", email: "tester@example.com", date: "2020-01-01T00:00:00Z" };

export class TestRepository implements Disposable {
  /** What servers serve; the repository is `<root>/<name>.git`. */
  readonly root: string;
  readonly directory: string;

  constructor(name = "shop") {
    this.root = mkdtempSync(join(tmpdir(), "repositories-"));
    this.directory = join(this.root, `${name}.git`);
    this.git(["init", "--quiet", "--bare", "--initial-branch=main", this.directory], {});
    // What all hosting services allow.
    this.git(["config", "uploadpack.allowFilter", "true"]);
    this.git(["config", "uploadpack.allowAnySHA1InWant", "true"]);
  }

  [Symbol.dispose](): void {
    rmSync(this.root, { recursive: true, force: true });
  }

  git(args: string[], { input, index }: { input?: string | Buffer; index?: string } = {}): string {
    const { name, email, date } = identity;
    const env = {
      PATH: process.env["PATH"],
      HOME: this.root,
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_DIR: this.directory,
      ...(index ? { GIT_INDEX_FILE: index } : {}),
      GIT_AUTHOR_NAME: name,
      GIT_AUTHOR_EMAIL: email,
      GIT_AUTHOR_DATE: date,
      GIT_COMMITTER_NAME: name,
      GIT_COMMITTER_EMAIL: email,
      GIT_COMMITTER_DATE: date,
    };
    const options = { env, cwd: this.root, ...(input === undefined ? {} : { input }) };
    return execFileSync("git", args, { ...options, stdio: ["pipe", "pipe", "pipe"] })
      .toString()
      .trim();
  }

  /** Adds files to what the branch has; returns the commit's id. */
  commit(files: Record<string, string | Buffer>, branch = "main"): string {
    const index = join(this.root, "index");
    const ref = `refs/heads/${branch}`;
    const parent = this.#find(ref);
    this.git(parent ? ["read-tree", parent] : ["read-tree", "--empty"], { index });
    const lines = Object.entries(files).map(
      ([path, content]) => `100644 ${this.blob(content)}\t${path}\0`,
    );
    this.git(["update-index", "--add", "-z", "--index-info"], { index, input: lines.join("") });
    return this.commitTree(this.git(["write-tree"], { index }), branch);
  }

  blob(content: string | Buffer): string {
    return this.git(["hash-object", "-w", "--stdin"], { input: content });
  }

  /** A tree just as it is written here, whatever Git thinks of its names. */
  tree(entries: [mode: string, name: string, id: string][]): string {
    const parts = entries
      .toSorted(([, a], [, b]) => (a < b ? -1 : 1))
      .map(([mode, name, id]) => [Buffer.from(`${mode} ${name}\0`), Buffer.from(id, "hex")]);
    const args = ["hash-object", "-t", "tree", "-w", "--literally", "--stdin"];
    return this.git(args, { input: Buffer.concat(parts.flat()) });
  }

  commitTree(tree: string, branch: string): string {
    const ref = `refs/heads/${branch}`;
    const parent = this.#find(ref);
    const parents = parent ? ["-p", parent] : [];
    const commit = this.git(["commit-tree", tree, ...parents, "-m", "a change"]);
    this.git(["update-ref", ref, commit]);
    return commit;
  }

  #find(ref: string): string | undefined {
    return this.git(["for-each-ref", "--format=%(objectname)", ref]) || undefined;
  }
}
