import { type Probe } from "@spry/kube";
import { type FieldErrors } from "../../../field-errors.ts";
import {
  checkNotNegative,
  checkPort,
  checkPortOrName,
} from "../../../resources/validation/formats.ts";

/** `pkg/apis/core/validation`: probes and lifecycle hooks. */

interface HttpGet {
  path?: string;
  port?: number | string;
  scheme?: string;
}
export interface Handler {
  exec?: { command?: string[] };
  httpGet?: HttpGet;
  tcpSocket?: { port?: number | string };
  grpc?: { port?: number };
  sleep?: { seconds?: number };
}

const kinds = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] as const;

export function validateHandler(handler: Handler, path: string, errors: FieldErrors): void {
  const [first, ...more] = kinds.filter((kind) => handler[kind]);
  if (!first) return errors.required(path, "must specify a handler type");
  validateAction(handler, first, `${path}.${first}`, errors);
  for (const extra of more)
    errors.forbidden(`${path}.${extra}`, "may not specify more than 1 handler type");
}

function validateAction(
  { exec, httpGet, tcpSocket, grpc }: Handler,
  kind: (typeof kinds)[number],
  path: string,
  errors: FieldErrors,
): void {
  if (kind === "exec" && !exec?.command?.length) errors.required(`${path}.command`);
  if (kind === "tcpSocket") checkPortOrName(tcpSocket?.port, `${path}.port`, errors);
  if (kind === "grpc") checkPort(grpc?.port, `${path}.port`, errors);
  if (kind !== "httpGet" || !httpGet) return;
  if (!httpGet.path) errors.required(`${path}.path`);
  checkPortOrName(httpGet.port, `${path}.port`, errors);
  const schemes = ["HTTP", "HTTPS"];
  if (!schemes.includes(httpGet.scheme ?? ""))
    errors.unsupported(`${path}.scheme`, httpGet.scheme ?? "", schemes);
}

const counts = [
  "initialDelaySeconds",
  "timeoutSeconds",
  "periodSeconds",
  "successThreshold",
  "failureThreshold",
] as const;

/** `once`: one success must do, as for all but readiness. */
export function validateProbe(
  probe: Probe,
  once: boolean,
  path: string,
  errors: FieldErrors,
): void {
  validateHandler(probe, path, errors);
  checkNotNegative(probe, counts, path, errors);
  const grace = (probe as { terminationGracePeriodSeconds?: number }).terminationGracePeriodSeconds;
  if (grace !== undefined && grace <= 0)
    errors.invalid(`${path}.terminationGracePeriodSeconds`, grace, "must be greater than 0");
  if (!once && grace !== undefined) {
    errors.invalid(
      `${path}.terminationGracePeriodSeconds`,
      grace,
      "must not be set for readinessProbes",
    );
  }
  if (once && probe.successThreshold !== undefined && probe.successThreshold !== 1)
    errors.invalid(`${path}.successThreshold`, probe.successThreshold, "must be 1");
}
