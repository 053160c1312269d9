/** The chart in the repository is what the objects of `spry install` come to, by Helm's own account too. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { certificateFor } from "@spry/test-kit";
import { loadAll } from "js-yaml";
import { afterAll, describe, expect, test } from "vitest";
import { installObjects } from "../../packages/cli/src/install/objects.ts";
import { type InstalledObject } from "../../packages/cli/src/install/parts.ts";
import { readValues } from "../../packages/cli/src/install/values.ts";
import { version } from "../../packages/cli/src/version.ts";
import { chartFiles } from "./chart.ts";
import { helm } from "./helm.ts";

const dir = path.resolve(import.meta.dirname, "../../deploy/helm/spry");
const scratch = mkdtempSync(path.join(tmpdir(), "chart-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

test("the chart is up to date (npm run chart)", () => {
  const all = readdirSync(dir, { recursive: true, withFileTypes: true });
  const files = all
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(dir, path.join(entry.parentPath, entry.name)));
  const present = files.map((file) => [file, readFileSync(path.join(dir, file), "utf8")]);
  expect(Object.fromEntries(present)).toEqual(chartFiles(version));
});

const { crt: authority } = await certificateFor("registry.example");
const program = helm();
const digest = `@sha256:${"0".repeat(64)}`;
const images = Object.fromEntries(
  ["controller", "registry", "gateway", "dashboard", "eventing", "builder", "nodejs24"].map(
    (name) => [name, `r.example/${name}${digest}`],
  ),
);

describe.skipIf(!existsSync(program))(
  `Helm renders what spry install applies (needs ${program})`,
  () => {
    test.each<[string, object]>([
      ["the defaults", {}],
      [
        "an external registry",
        {
          registry: { enabled: false },
          serverless: { dockerRegistry: { enableInternal: false, secretName: "mine" } },
        },
      ],
      ["a volume of a class", { registry: { storage: { storageClassName: "fast", size: "5Gi" } } }],
      ["a gateway", { gateway: { enabled: true, replicas: 2, serviceType: "LoadBalancer" } }],
      [
        "a dashboard with a login",
        {
          dashboard: {
            enabled: true,
            replicas: 2,
            url: "https://spry.example.com",
            oidc: {
              issuer: "https://login.example.com",
              clientId: "spry",
              secretName: "oidc",
              certificateAuthority: "one\ntwo\n",
            },
          },
        },
      ],
      ["a dashboard", { dashboard: { enabled: true } }],
      ["events", { eventing: { enabled: true, replicas: 3 } }],
      [
        "events in a quorum of three",
        {
          eventing: {
            enabled: true,
            nats: {
              replicas: 3,
              image: "r.example/nats:2.12",
              storage: { size: "9Gi", storageClassName: "fast" },
            },
          },
        },
      ],
      [
        "events in NATS servers of another owner",
        {
          eventing: {
            enabled: true,
            nats: { servers: ["nats://a.example:4222", "nats://b.example:4222"], replicas: 3 },
          },
        },
      ],
      ["an empty directory", { registry: { nodePort: 30000, storage: { kind: "emptyDir" } } }],
      [
        "everything else",
        {
          replicas: 2,
          memory: "1Gi",
          imagePullSecrets: ["one", "two"],
          plainRegistries: ["a:1", "b:2"],
          registryCertificateAuthority: authority,
          buildEnvironment: { HTTPS_PROXY: "http://proxy:3128" },
        },
      ],
    ])("%s", (_, values) => {
      const file = path.join(scratch, "values.json");
      writeFileSync(file, JSON.stringify({ images, ...values }));
      // A Helm that `go build` made believes in Kubernetes 1.20.
      const args = [
        "template",
        "spry",
        dir,
        "--kube-version=1.34.0",
        "--namespace",
        "kyma-system",
        "--values",
        file,
      ];
      const rendered = loadAll(execFileSync(program, args, { encoding: "utf8" }));
      const wished = installObjects(readValues([file])).filter(({ kind }) => kind !== "Namespace");
      expect(byName(rendered as InstalledObject[])).toEqual(byName(wished));
    });

    test("it finds nothing wrong", () => {
      const file = path.join(scratch, "values.json");
      writeFileSync(file, JSON.stringify({ images }));
      const said = execFileSync(program, ["lint", dir, "--strict", "--values", file], {
        encoding: "utf8",
      });
      expect(said).toContain("1 chart(s) linted, 0 chart(s) failed");
    });
  },
);

/** Without what is Helm's own; texts of JSON are compared as what they hold. */
function byName(objects: InstalledObject[]): Record<string, unknown> {
  const entries = objects.filter(Boolean).map((object) => {
    const copy = JSON.parse(JSON.stringify(object), (key, value: unknown) =>
      key === "value" && typeof value === "string" && value.startsWith("{")
        ? JSON.parse(value)
        : value,
    ) as InstalledObject;
    const { annotations } = copy.metadata;
    delete annotations?.["helm.sh/hook"];
    if (annotations && Object.keys(annotations).length === 0) delete copy.metadata.annotations;
    return [`${object.kind}/${object.metadata.name}`, copy] as const;
  });
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
