import { connect } from "node:http2";
import { type ProbeResult } from "./probes.ts";

/** `grpc.health.v1.HealthCheckResponse.ServingStatus`. */
const statuses = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];
const serving = 1;
/** An answer has two bytes. */
const maxAnswer = 1024;

/**
 * Asks `grpc.health.v1.Health/Check` (GRPC Health Checking Protocol) over plain HTTP/2, in the words of
 * the kubelet (`pkg/probe/grpc/grpc.go`). Never throws.
 */
export function probeGrpc(
  { host, port, service }: { host: string; port: number; service: string },
  timeoutMs: number,
): Promise<ProbeResult> {
  return new Promise((resolve) => {
    const session = connect(`http://${host.includes(":") ? `[${host}]` : host}:${port}`);
    const end = (success: boolean, message: string) => {
      clearTimeout(timer);
      session.destroy();
      resolve({ success, message });
    };
    const fail = (why: string) => end(false, why);
    const late = `timeout: failed to connect service "${host}:${port}" within ${timeoutMs} ms`;
    const timer = setTimeout(() => fail(late), timeoutMs);
    session.on("error", (error) => fail(`error: health rpc probe failed: ${error.message}`));
    const stream = session.request({
      ":method": "POST",
      ":path": "/grpc.health.v1.Health/Check",
      "content-type": "application/grpc",
      te: "trailers",
      "user-agent": "kube-probe/spry",
    });
    let code: string | undefined;
    let answer = Buffer.alloc(0);
    // An answer without a body has its code among the headers.
    for (const event of ["response", "trailers"] as const)
      stream.on(event, (headers: Record<string, unknown>) => {
        const given = headers["grpc-status"];
        if (given !== undefined) code = String(given);
      });
    stream.on("data", (chunk: Buffer) => {
      if (answer.length < maxAnswer) answer = Buffer.concat([answer, chunk]);
    });
    stream.on("error", (error) => fail(`error: health rpc probe failed: ${error.message}`));
    stream.on("end", () => {
      if (code === "12")
        fail(
          "error: this server does not implement the grpc health protocol (grpc.health.v1.Health)",
        );
      else if (code !== "0") fail(`error: health rpc probe failed: code ${code ?? "missing"}`);
      else {
        const status = statusOf(answer);
        const name = statuses[status] ?? String(status);
        const isServing = status === serving;
        end(isServing, isServing ? "" : `service unhealthy (responded with "${name}")`);
      }
    });
    stream.end(requestOf(service));
  });
}

/** A frame (compressed-flag, length) with `HealthCheckRequest { string service = 1; }`. */
function requestOf(service: string): Buffer {
  const name = Buffer.from(service);
  const field = name.length === 0 ? [] : [Buffer.of(0x0a), varint(name.length), name];
  const message = Buffer.concat(field);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>>= 7) {
    if (rest < 128) return Buffer.from([...bytes, rest]);
    bytes.push((rest & 127) | 128);
  }
}

/** `HealthCheckResponse { ServingStatus status = 1; }`; the default of an absent field is 0. */
function statusOf(frame: Buffer): number {
  const message = frame.subarray(5);
  return message[0] === 0x08 ? (message[1] ?? 0) : 0;
}
