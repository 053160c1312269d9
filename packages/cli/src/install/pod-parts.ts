/** What the Pods of events and of NATS share. */

/** A variable with a field of the Pod. */
export const field = (name: string, fieldPath: string) => ({
  name,
  valueFrom: { fieldRef: { fieldPath } },
});

/** Not all on one node, if there are several. */
export const spread = (labels: object) => [
  {
    maxSkew: 1,
    topologyKey: "kubernetes.io/hostname",
    whenUnsatisfiable: "ScheduleAnyway",
    labelSelector: { matchLabels: labels },
  },
];
