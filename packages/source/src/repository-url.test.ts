import { describe, expect, test } from "vitest";
import { parseRepositoryUrl } from "./repository-url.ts";

describe("a repository's URL", () => {
  test.each([
    ["https://github.com/a/b.git", "http", "https://github.com/a/b.git", "https://github.com"],
    [
      "http://host:3000/a b".replace(" ", "%20"),
      "http",
      "http://host:3000/a%20b",
      "http://host:3000",
    ],
    ["https://ann@host/x/y", "http", "https://ann@host/x/y", "https://host"],
    ["git@github.com:a/b.git", "ssh", "git@github.com:a/b.git", ""],
    ["ssh://git@host:2222/a/b.git", "ssh", "ssh://git@host:2222/a/b.git", ""],
    ["ssh://host/a/b.git", "ssh", "ssh://git@host/a/b.git", ""],
    ["ssh://git@[::1]:22/a", "ssh", "ssh://git@[::1]:22/a", ""],
    // The name that is pinned to the checked addresses is the one that Git asks for.
    ["https://evil.example./x", "http", "https://evil.example/x", "https://evil.example"],
    ["ssh://git@evil.example./x", "ssh", "ssh://git@evil.example/x", ""],
  ])("%s is %s", (text, transport, url, origin) =>
    expect(parseRepositoryUrl(text)).toMatchObject({ transport, url, origin }),
  );

  test.each([
    ["an option", "--upload-pack=touch /tmp/x"],
    ["an option without blanks", "-oProxyCommand=x"],
    ["a command", "ext::sh -c id"],
    ["a command without blanks", "ext::id"],
    ["another helper", "fd::17/x"],
    ["a path", "/etc"],
    ["a relative path", "../x"],
    ["a file", "file:///etc"],
    ["an unauthenticated protocol", "git://host/x.git"],
    ["a host that is an option", "ssh://-oProxyCommand=id/x"],
    ["a host that is an option, in short", "git@-oProxyCommand=id:x"],
    ["a user that is an option", "-oProxyCommand=id@host:x"],
    ["a path that is an option", "git@host:-x"],
    ["a line end", "https://host/x\nhost=evil"],
    ["backslashes", "https://host\\@evil/x"],
    ["a password", "https://ann:secret@host/x.git"],
    ["nothing", ""],
    ["very much", `https://host/${"x".repeat(5000)}`],
  ])("must not be %s", (_, url) => {
    const refuse = () => parseRepositoryUrl(url);
    expect(refuse).toThrow(/^source\.gitRepository\.url /);
    expect(refuse).not.toThrow("secret@");
  });
});
