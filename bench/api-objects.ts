/** What `bench -- api` writes. */

export const configMap = (name: string, round: number) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, labels: { app: "bench" } },
  data: { round: String(round), text: "x".repeat(512) },
});

/** Of no scheduler's, so that no controller touches it; as large as a Function's Pod. */
export const pod = (name: string) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, labels: { app: "bench", "serverless.kyma-project.io/function-name": "bench" } },
  spec: {
    schedulerName: "none",
    containers: [
      {
        name: "function",
        image:
          "registry.example/bench@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        ports: [{ containerPort: 8080 }],
        env: Array.from({ length: 12 }, (_, index) => ({
          name: `VARIABLE_${index}`,
          value: `value ${index}`,
        })),
        readinessProbe: { httpGet: { path: "/healthz", port: 8080 }, periodSeconds: 5 },
        resources: { limits: { cpu: "100m", memory: "128Mi" } },
      },
    ],
  },
});
