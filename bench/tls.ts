/**
 * What a TLS handshake costs the gateway, alongside nginx with the same certificate and the same settings (if it is
 * installed): processor time of the server for each, of which the rate that a core can do follows. Full handshakes of
 * TLS 1.3 with an ECDSA certificate, without resumption; servers are on core 1, clients on core 0, and take turns.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { connect } from "node:tls";
import { certificateFor, freePort, hasEnded } from "@spry/test-kit";
import { quantile } from "./figures.ts";

const rounds = 7;
const handshakes = 500;
const atOnce = 8;
const servername = "dice.example.com";
/** Of nginx' rate. */
const aim = 0.6;

interface Server {
  name: string;
  child: ChildProcess;
  port: number;
  micros: number[];
}

export async function run(): Promise<void> {
  const folder = mkdtempSync(path.join(tmpdir(), "spry-bench-"));
  const servers: Server[] = [];
  try {
    const { crt, key } = await certificateFor(servername);
    const files = [path.join(folder, "tls.crt"), path.join(folder, "tls.key")];
    for (const [index, text] of [crt, key].entries()) writeFileSync(files[index] ?? "", text);
    servers.push(await startGateway(files));
    const nginx = await startNginx(folder, files);
    if (nginx) servers.push(nginx);
    for (const server of servers) await measure(server);
    for (let round = 0; round < rounds; round++)
      for (const server of servers) server.micros.push(await measure(server));
    const costs = servers.map(({ micros }) => quantile(micros, 0.5));
    for (const [index, { name }] of servers.entries())
      console.log(`handshake, ${name}`.padEnd(28), `${costs[index]?.toFixed(0)} µs`.padStart(10));
    if (!nginx) return console.log("nginx is not installed: there is nothing to compare with");
    const share = (costs[1] ?? 0) / (costs[0] ?? 1);
    const verdict = share >= aim ? "✔" : "✘";
    console.log(`rate, of nginx'`.padEnd(28), `${(share * 100).toFixed(0)} %`.padStart(10));
    console.log(`   aim ≥ ${aim * 100} % ${verdict}`);
  } finally {
    for (const { child } of servers) child.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function startGateway(files: string[]): Promise<Server> {
  const own = path.join(import.meta.dirname, "tls-gateway-process.ts");
  const command = ["-c", "1", process.execPath, own, ...files];
  const child = spawn("taskset", command, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const [port] = (await once(child, "message")) as [number];
  return { name: "gateway", child, port, micros: [] };
}

async function startNginx(folder: string, [crt, key]: string[]): Promise<Server | undefined> {
  if (spawnSync("nginx", ["-v"]).error) return undefined;
  const port = await freePort();
  const file = path.join(folder, "nginx.conf");
  writeFileSync(
    file,
    `daemon off; master_process off; pid ${folder}/nginx.pid; error_log ${folder}/error.log;
     events { worker_connections 1024; }
     http { access_log off; client_body_temp_path ${folder}/a; proxy_temp_path ${folder}/b;
       fastcgi_temp_path ${folder}/c; uwsgi_temp_path ${folder}/d; scgi_temp_path ${folder}/e;
       server { listen 127.0.0.1:${port} ssl; server_name ${servername}; ssl_certificate ${crt};
         ssl_certificate_key ${key}; ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache off;
         return 404; } }`,
  );
  const child = spawn("taskset", ["-c", "1", "nginx", "-c", file], { stdio: "ignore" });
  const server = { name: "nginx", child, port, micros: [] };
  while (!(await handshake(port).catch(() => false))) {
    if (hasEnded(child)) throw new Error(readFileSync(path.join(folder, "error.log"), "utf8"));
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return server;
}

/** Microseconds of the server's processor for a handshake. */
async function measure({ child, port }: Server): Promise<number> {
  const before = processorMicros(child.pid ?? 0);
  let left = handshakes;
  const client = async () => {
    while (left-- > 0) await handshake(port);
  };
  await Promise.all(Array.from({ length: atOnce }, client));
  return (processorMicros(child.pid ?? 0) - before) / handshakes;
}

function handshake(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const options = { servername, rejectUnauthorized: false, ALPNProtocols: ["http/1.1"] };
    const socket = connect({ host: "127.0.0.1", port, minVersion: "TLSv1.3", ...options });
    socket.once("error", reject);
    socket.once("secureConnect", () => {
      socket.once("close", () => resolve(true));
      socket.destroy();
    });
  });
}

/** In ticks of 10 ms: hundreds of handshakes are many of them. */
function processorMicros(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}
