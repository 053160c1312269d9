import { type Container, type Probe } from "@spry/kube";
import { FieldErrors, onlyFields } from "./field-error.ts";

const maxInt32 = 2 ** 31 - 1;
const handlers = ["exec", "httpGet", "tcpSocket", "grpc"] as const;
const fields = [
  ...handlers,
  "initialDelaySeconds",
  "timeoutSeconds",
  "periodSeconds",
  "successThreshold",
  "failureThreshold",
  "terminationGracePeriodSeconds",
];
const handlerFields = {
  exec: ["command"],
  httpGet: ["host", "path", "scheme", "httpHeaders", "port"],
  tcpSocket: ["host", "port"],
  grpc: ["port", "service"],
};

/** The probes of a container; a port that they name must be the serving one's, whose name is given. */
export function checkProbes(container: Container, portName: string | undefined): FieldErrors {
  const { livenessProbe, readinessProbe, startupProbe } = container;
  const errors = new FieldErrors();
  if (livenessProbe) errors.via("livenessProbe", checkProbe(livenessProbe, portName));
  if (startupProbe) errors.via("startupProbe", checkProbe(startupProbe, portName));
  if (readinessProbe) {
    errors.via("readinessProbe", checkProbe(readinessProbe, portName));
    errors.via("readinessProbe", checkReadiness(readinessProbe));
  }
  return errors;
}

function checkProbe(probe: Probe, portName: string | undefined): FieldErrors {
  const errors = onlyFields(probe, fields);
  const given = handlers.filter((kind) => probe[kind]);
  for (const kind of given) errors.via(kind, onlyFields(probe[kind], handlerFields[kind]));
  for (const kind of ["httpGet", "tcpSocket"] as const) {
    const port = probe[kind]?.port;
    if (!probe[kind]) continue;
    if (portName === undefined) {
      if (!port) errors.invalid(port ?? 0, `${kind}.port`, "Probe port must be specified");
    } else if (typeof port === "string" && port !== "" && port !== portName) {
      errors.invalid(port, `${kind}.port`, "Probe port must match container port");
    }
  }
  if (given.length === 0) errors.missingOneOf("httpGet", "tcpSocket", "exec", "grpc");
  if (given.length > 1) errors.multipleOneOf(...given);
  return errors;
}

/** A period of 0 asks for frequent probes; then there is nothing else to choose. */
function checkReadiness(probe: Probe): FieldErrors {
  const errors = new FieldErrors();
  const { periodSeconds = 0, initialDelaySeconds = 0, successThreshold = 0 } = probe;
  const { failureThreshold = 0, timeoutSeconds = 0 } = probe;
  if (periodSeconds < 0) errors.outOfBounds(periodSeconds, 0, maxInt32, "periodSeconds");
  if (initialDelaySeconds < 0)
    errors.outOfBounds(initialDelaySeconds, 0, maxInt32, "initialDelaySeconds");
  if (successThreshold < 1) errors.outOfBounds(successThreshold, 1, maxInt32, "successThreshold");
  if (periodSeconds === 0) {
    if (failureThreshold !== 0)
      errors.add("failureThreshold is disallowed when periodSeconds is zero", "failureThreshold");
    if (timeoutSeconds !== 0)
      errors.add("timeoutSeconds is disallowed when periodSeconds is zero", "timeoutSeconds");
  } else {
    if (timeoutSeconds < 1) errors.outOfBounds(timeoutSeconds, 1, maxInt32, "timeoutSeconds");
    if (failureThreshold < 1) errors.outOfBounds(failureThreshold, 1, maxInt32, "failureThreshold");
  }
  return errors;
}
