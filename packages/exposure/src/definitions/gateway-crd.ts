import { istioGateways } from "@spry/function";
import { type CustomResourceDefinition } from "@spry/kube";
import { ourLabels } from "./ownership.ts";
import { anything, boolean, integer, list, map, object, type Schema, text } from "./schema.ts";

/** Istio serves one schema under three versions. */
const versions = ["v1", "v1beta1", "v1alpha3"];

/**
 * The CustomResourceDefinition of Istio's Gateways, for clusters without Istio: the fields that are read here are
 * checked, the others kept (istio.io/api `networking/v1/gateway.proto`).
 */
export function gatewayCrd(): CustomResourceDefinition {
  const { group, kind, plural } = istioGateways;
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}`, labels: ourLabels },
    spec: {
      group,
      scope: "Namespaced",
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: "gateway",
        shortNames: ["gw"],
        categories: ["istio-io", "networking-istio-io"],
      },
      versions: versions.map((name) => ({
        name,
        served: true,
        storage: name === istioGateways.version,
        subresources: { status: {} },
        schema: { openAPIV3Schema: schema() },
      })),
    },
  };
}

function schema(): Schema {
  const tls = object({
    mode: {
      ...text(),
      enum: [
        "PASSTHROUGH",
        "SIMPLE",
        "MUTUAL",
        "AUTO_PASSTHROUGH",
        "ISTIO_MUTUAL",
        "OPTIONAL_MUTUAL",
      ],
    },
    credentialName: text(253),
    httpsRedirect: boolean,
  });
  const port = object({ number: integer(0, 65_535), name: text(63), protocol: text(32) }, [
    "number",
    "protocol",
    "name",
  ]);
  const server = object({ name: text(253), port, hosts: list(text(320), 100), tls }, [
    "port",
    "hosts",
  ]);
  const keepsOthers = { "x-kubernetes-preserve-unknown-fields": true };
  return object({
    apiVersion: text(),
    kind: text(),
    metadata: { type: "object" },
    spec: object({
      selector: map(text(63), 20),
      servers: list(
        { ...server, properties: { ...server.properties, tls: { ...tls, ...keepsOthers } } },
        100,
      ),
    }),
    status: anything,
  });
}
