import { type Step } from "./exchange.ts";
import { type Random } from "./random.ts";
import { type Family, written } from "./requests.ts";

/** The Pod whose ports answer; it is on a node whose kubelet says yes to all. */
export const podName = "web";

/** Handshakes that are none, and frames on connections that have changed their protocol. */
export const upgrades: Family = (random) => {
  const isPort = random.below(2) === 0;
  const path = `/api/v1/namespaces/default/pods/${podName}/${
    isPort
      ? `portforward${random.one(["", "?ports=80", "?ports=0,x", `?ports=${"1,".repeat(500)}`])}`
      : random.one(["exec?command=a&stdout=1", "attach?stdin=1", "exec?tty=1&stdin=1&command=%00"])
  }`;
  const isSpdy = random.below(2) === 0;
  const protocols = random.one(["v4.channel.k8s.io", "v5.channel.k8s.io", "portforward.k8s.io", "SPDY/3.1+portforward.k8s.io", "channel.k8s.io", "", ",,,", "x".repeat(9000)]); // prettier-ignore
  const webSocket = [
    ["connection", random.one(["Upgrade", "upgrade, x", "keep-alive, Upgrade"])],
    ["upgrade", random.one(["websocket", "websocket", "websocket", "WebSocket", "h2c", ""])],
    ["sec-websocket-version", random.one(["13", "13", "13", "8", ""])],
    ["sec-websocket-key", random.one(["AAAAAAAAAAAAAAAAAAAAAA==", "AAAAAAAAAAAAAAAAAAAAAA==", "", "x"])],
    ["sec-websocket-protocol", protocols],
  ] as [string, string][]; // prettier-ignore
  const spdy = [
    ["connection", "Upgrade"],
    ["upgrade", random.one(["SPDY/3.1", "SPDY/3.1", "SPDY/2", "spdy/3.1"])],
    ["x-stream-protocol-version", random.one(["v4.channel.k8s.io", "portforward.k8s.io", protocols])],
  ] as [string, string][]; // prettier-ignore
  const request = written({ method: isSpdy ? "POST" : "GET", path, headers: isSpdy ? spdy : webSocket }); // prettier-ignore
  const frames = isSpdy ? spdyFrames(random) : webSocketFrames(random);
  return random.one<() => Step[]>([
    () => [request, { pauseMs: 20 }, frames, "half-close"],
    () => [Buffer.concat([request, frames])],
    () => [request, "reset"],
    () => [request, { pauseMs: 20 }, random.damaged(frames), "half-close"],
  ])();
};

function spdyFrames(random: Random): Buffer {
  const control = (type: number, flags: number, length: number, body: Buffer) =>
    Buffer.concat([Buffer.from([0x80, random.one([3, 3, 3, 2]), 0, type, flags, length >>> 16, (length >>> 8) & 255, length & 255]), body]); // prettier-ignore
  const frame = () => {
    const body = random.one([random.bytes(random.below(40)), Buffer.alloc(random.one([0, 4, 10, 70_000]))]); // prettier-ignore
    const length = random.one([body.length, body.length, body.length, 0xff_ff_ff, 0]);
    if (random.below(3) > 0) return control(1 + random.below(9), random.below(3), length, body);
    return Buffer.concat([Buffer.from([0, 0, 0, random.below(9), random.below(2), length >>> 16, (length >>> 8) & 255, length & 255]), body]); // prettier-ignore
  };
  return Buffer.concat(Array.from({ length: 1 + random.below(8) }, frame));
}

function webSocketFrames(random: Random): Buffer {
  const frame = () => {
    const body = random.bytes(random.below(60));
    const first = random.one([0x82, 0x82, 0x81, 0x02, 0x00, 0x88, 0x89, 0x8a, 0xf2, 0x83, 0xff]);
    const masked = random.one([0x80, 0x80, 0x80, 0]);
    const length = random.one([
      Buffer.from([masked | body.length]),
      Buffer.from([masked | body.length]),
      Buffer.concat([Buffer.from([masked | 127]), Buffer.alloc(8, random.one([0, 1, 0x7f, 0xff]))]),
      Buffer.concat([Buffer.from([masked | 126]), random.bytes(2)]),
    ]);
    return Buffer.concat([Buffer.from([first]), length, Buffer.alloc(masked ? 4 : 0), body]);
  };
  return Buffer.concat(Array.from({ length: 1 + random.below(8) }, frame));
}
