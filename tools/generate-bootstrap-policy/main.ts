/**
 * Writes the roles and bindings that every Kubernetes API server has from its start, out of the lists
 * that the Kubernetes project keeps next to its sources to see them change.
 *
 *     node tools/generate-bootstrap-policy/main.ts [v1.36.3]
 *
 * Needs Go, whose module proxy brings the release. Writes
 * `packages/apiserver/src/generated/bootstrap-policy.json`: `{ release, objects }`.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { load } from "js-yaml";

interface PolicyObject {
  kind: string;
  metadata: { name: string; namespace?: string; creationTimestamp?: unknown };
  rules?: unknown;
}

const release = process.argv[2] ?? "v1.36.3";
const sources = [
  "cluster-roles",
  "cluster-role-bindings",
  "controller-roles",
  "controller-role-bindings",
  "namespace-roles",
  "namespace-role-bindings",
];

const answer = execFileSync("go", ["mod", "download", "-json", `k8s.io/kubernetes@${release}`], {
  cwd: "/",
  encoding: "utf8",
});
const { Dir: root } = JSON.parse(answer) as { Dir: string };
const folder = path.join(root, "plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata");

const objects = sources.flatMap((name) => {
  const list = load(readFileSync(path.join(folder, `${name}.yaml`), "utf8")) as {
    items: PolicyObject[];
  };
  return list.items.map((object) => {
    delete object.metadata.creationTimestamp;
    // Filled by aggregation.
    if (object.rules === null) delete object.rules;
    return object;
  });
});
const out = path.resolve(
  import.meta.dirname,
  "../../packages/apiserver/src/generated/bootstrap-policy.json",
);
writeFileSync(out, `${JSON.stringify({ release, objects })}\n`);
