/** APIServices: those of the servers themselves, those that are refused, one whose server is missing. */
import { type Case, get, post, remove } from "../step.ts";

const group = "$ns.example.com";

const base64 = (text: string) => Buffer.from(text).toString("base64");
const pem = (content: string) =>
  `-----BEGIN CERTIFICATE-----\n${content}\n-----END CERTIFICATE-----\n`;
const apiServices = "/apis/apiregistration.k8s.io/v1/apiservices";

const apiService = (spec: object, name = `v1.${group}`) => ({
  apiVersion: "apiregistration.k8s.io/v1",
  kind: "APIService",
  metadata: { name },
  spec: {
    group,
    version: "v1",
    groupPriorityMinimum: 100,
    versionPriority: 10,
    service: { namespace: "$ns", name: "missing" },
    insecureSkipTLSVerify: true,
    ...spec,
  },
});

const mistakes: [spec: object, name?: string][] = [
  [{}, `v2.${group}`],
  [{}, "Bad_Name"],
  [{ groupPriorityMinimum: 0 }],
  [{ groupPriorityMinimum: 20_001 }],
  [{ versionPriority: 0 }],
  [{ versionPriority: 1001 }],
  [{ service: { namespace: "", name: "" } }],
  [{ service: { namespace: "$ns", name: "missing", port: 70_000 } }],
  [{ service: null }],
  [{ caBundle: base64("no PEM") }],
  [{ service: null, insecureSkipTLSVerify: false, caBundle: base64("no PEM") }],
];

const bundles = ["no PEM", pem("AAAA")].map((text) => ({
  insecureSkipTLSVerify: false,
  caBundle: base64(text),
}));

export const registrations: Case[] = [
  {
    name: "APIService: mistakes",
    steps: mistakes.map((one) => post(`${apiServices}?dryRun=All`, apiService(...one))),
  },
  {
    name: "APIService: bundles that cannot be read",
    steps: bundles.map((bundle) => post(`${apiServices}?dryRun=All`, apiService(bundle))),
  },
  {
    name: "APIService: of the server itself",
    steps: ["v1.", "v1.apps", "v1.rbac.authorization.k8s.io"].map((name) =>
      get(`${apiServices}/${name}`),
    ),
  },
  {
    name: "APIService: a missing server",
    steps: [
      post(apiServices, apiService({})),
      {
        ...get(`${apiServices}/v1.${group}`),
        untilText: "ServiceNotFound",
      },
      { ...get(`/apis/${group}/v1/things`), until: 503 },
      post(`/apis/${group}/v1/things`, {}),
      remove(`${apiServices}/v1.${group}`),
    ],
  },
];
