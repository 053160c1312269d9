/** Real Git servers for the tests of every room. */
export { type GitHttpOptions, GitHttpServer } from "./git-http-server.ts";
export { LfsObjects } from "./lfs-server.ts";
export { TestRepository } from "./git-repository.ts";
export { createKeyPair, noSshReason, SshServer } from "./ssh-server.ts";
