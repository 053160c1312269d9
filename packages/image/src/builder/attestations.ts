import { createHash } from "node:crypto";
import { type Artifact } from "../attach-artifact.ts";
import { type Digest } from "../digest.ts";

/** A package in a Function's image. */
export interface Component {
  ecosystem: "npm" | "pypi";
  name: string;
  version: string;
}

/** What the documents about an image say. */
export interface ImageFacts {
  digest: Digest;
  /** Of the image, without its host. */
  repository: string;
  title?: string | undefined;
  runtime: string;
  created?: string | undefined;
  components: readonly Component[];
  source: { digest: Digest; url?: string | undefined; revision?: string | undefined };
  base: { digest: Digest; name?: string | undefined };
}

const sbomType = "application/vnd.cyclonedx+json";
const statementType = "application/vnd.in-toto+json";
const provenanceType = "https://slsa.dev/provenance/v1";

/**
 * A bill of materials (CycloneDX 1.6) and the build's provenance (SLSA 1.0 in an in-toto statement).
 * Both say nothing that is not in the image's inputs, so that they are the same for the same image.
 */
export function attestationsOf(facts: ImageFacts): Artifact[] {
  const created = facts.created ? { "org.opencontainers.image.created": facts.created } : {};
  return [
    { type: sbomType, content: encode(billOfMaterials(facts)), annotations: created },
    {
      type: statementType,
      content: encode(provenance(facts)),
      annotations: { ...created, "in-toto.io/predicate-type": provenanceType },
    },
  ];
}

function billOfMaterials(facts: ImageFacts): object {
  const { digest, repository, title, created, components } = facts;
  const name = repository.slice(repository.lastIndexOf("/") + 1);
  const purls = new Map(components.map((component) => [purlOf(component), component]));
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    serialNumber: `urn:uuid:${uuidOf(digest)}`,
    version: 1,
    metadata: {
      ...(created ? { timestamp: created } : {}),
      tools: { components: [{ type: "application", name: "spry" }] },
      component: {
        type: "container",
        "bom-ref": digest,
        name: title ?? name,
        version: digest,
        purl: `pkg:oci/${name}@${encodeURIComponent(digest)}`,
      },
    },
    components: [...purls]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([purl, { name: of, version }]) => ({
        type: "library",
        "bom-ref": purl,
        name: of,
        version,
        purl,
      })),
  };
}

function provenance({ digest, repository, runtime, source, base }: ImageFacts): object {
  const git = source.revision
    ? [{ uri: `git+${source.url ?? ""}`, digest: { gitCommit: source.revision } }]
    : [];
  return {
    _type: "https://in-toto.io/Statement/v1",
    subject: [{ name: repository, digest: sha256(digest) }],
    predicateType: provenanceType,
    predicate: {
      buildDefinition: {
        buildType: "urn:spry:function-build:v1",
        externalParameters: { runtime, source: { digest: sha256(source.digest) } },
        resolvedDependencies: [
          { ...(base.name ? { uri: base.name } : {}), digest: sha256(base.digest) },
          ...git,
        ],
      },
      runDetails: { builder: { id: "urn:spry:builder" } },
    },
  };
}

/** As the package URL specification writes them. */
function purlOf({ ecosystem, name, version }: Component): string {
  const plain = ecosystem === "pypi" ? name.toLowerCase().replaceAll("_", "-") : name;
  const path = plain.split("/").map(encodeURIComponent).join("/");
  return `pkg:${ecosystem}/${path}@${encodeURIComponent(version)}`;
}

const sha256 = (digest: Digest) => ({ sha256: digest.slice("sha256:".length) });
const encode = (value: object) => Buffer.from(JSON.stringify(value));

/** A version 5 UUID in form: made of a name, not of chance. */
function uuidOf(name: string): string {
  const hex = createHash("sha1").update(name).digest("hex");
  const variant = ((parseInt(hex.slice(16, 18), 16) & 0x3f) | 0x80).toString(16);
  const groups = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `5${hex.slice(13, 16)}`,
    variant + hex.slice(18, 20),
    hex.slice(20, 32),
  ];
  return groups.join("-");
}
