import { expect, test } from "vitest";
import { type GitCredentials } from "./credentials.ts";
import { parseRepositoryUrl } from "./repository-url.ts";
import { credentialsFor, submoduleUrl } from "./submodule-url.ts";

test.each<[url: string, parent: string, found: string]>([
  ["../lib.git", "https://git.example/shop/app.git", "https://git.example/shop/lib.git"],
  ["../../lib.git", "https://git.example/shop/app.git/", "https://git.example/lib.git"],
  ["./sub.git", "https://git.example/shop/app.git", "https://git.example/shop/app.git/sub.git"],
  ["../lib.git", "git@git.example:shop/app.git", "git@git.example:shop/lib.git"],
  ["../../lib.git", "git@git.example:shop/app.git", "git@git.example:lib.git"],
  ["../lib", "ssh://git@git.example:2222/shop/app", "ssh://git@git.example:2222/shop/lib"],
  ["https://other.example/x.git", "git@git.example:a.git", "https://other.example/x.git"],
  ["git@other.example:x.git", "https://git.example/a.git", "git@other.example:x.git"],
  ["../lib.git", "http://127.0.0.1:8080/app.git", "http://127.0.0.1:8080/lib.git"],
])("%s in %s is %s", (url, parent, found) => {
  expect(submoduleUrl(url, parseRepositoryUrl(parent)).url).toBe(found);
});

test.each<[url: string, reason: string]>([
  ["file:///srv/x.git", "has the scheme file: use https or ssh"],
  ["/srv/x.git", "is neither an https URL nor an SSH address"],
  ["git://git.example/x.git", "has the scheme git: use https or ssh"],
  ["http://git.example/x.git", "has the scheme http: use https or ssh"],
  ["ext::sh -c touch% x", "is not a URL"],
  ["--upload-pack=x", "is neither an https URL nor an SSH address"],
  ["../../../../x.git", "leads above the host of the repository"],
  ["https://ann:secret@git.example/x.git", "holds a password"],
  ["", "is neither an https URL nor an SSH address"],
])("%s is refused", (url, reason) => {
  expect(() => submoduleUrl(url, parseRepositoryUrl("https://git.example/shop/app.git"))).toThrow(
    reason,
  );
});

test.each<[other: string, given: string, isShown: boolean]>([
  ["https://git.example/lib.git", "https://git.example/app.git", true],
  ["https://git.example:8443/lib.git", "https://git.example/app.git", false],
  ["https://git.example.evil.example/lib.git", "https://git.example/app.git", false],
  ["git@git.example:lib.git", "https://git.example/app.git", false],
  ["git@git.example:lib.git", "git@git.example:app.git", true],
  ["git@evil.example:lib.git", "git@git.example:app.git", false],
  ["ssh://git@git.example:2222/lib.git", "git@git.example:app.git", false],
])("credentials for %s, given for %s, are shown: %s", (other, url, isShown) => {
  const credentials: GitCredentials = { type: "basic", username: "ann", password: "secret" };
  expect(credentialsFor(parseRepositoryUrl(other), { url, credentials }) !== undefined).toBe(
    isShown,
  );
});
