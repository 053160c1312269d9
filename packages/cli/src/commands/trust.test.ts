import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { commandsFor, trust } from "./trust.ts";

test.each<[NodeJS.Platform, string[], string[]]>([
  [
    "darwin",
    [],
    ["sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain ca"],
  ],
  ["win32", [], ["certutil -addstore -user Root ca"]],
  [
    "linux",
    ["/usr/local/share/ca-certificates"],
    [
      "sudo install -m 0644 ca /usr/local/share/ca-certificates/spry-hosts.crt",
      "sudo update-ca-certificates",
    ],
  ],
  [
    "linux",
    ["/etc/pki/ca-trust/source/anchors"],
    [
      "sudo install -m 0644 ca /etc/pki/ca-trust/source/anchors/spry-hosts.crt",
      "sudo update-ca-trust",
    ],
  ],
  ["linux", [], []],
])("how %s with %j comes to trust a certificate", (platform, present, commands) => {
  const found = commandsFor(platform, "ca", (path) => present.includes(path));
  expect(found.map((command) => command.join(" "))).toEqual(commands);
});

test("a directory without a platform is named as that", async () => {
  await expect(trust({ dataDir: tmpdir() })).rejects.toThrow(
    `${tmpdir()} is not the data directory of a platform`,
  );
});
