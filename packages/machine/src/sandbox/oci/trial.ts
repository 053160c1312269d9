import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { interpreterLabel, Interpreters } from "../interpreters.ts";
import { containerDir } from "../records.ts";
import { type OciPod } from "./oci-pod.ts";
import { type OciContext } from "./runtime-process.ts";

const timeoutMs = 10_000;

/** Runs the smallest container there is; throws, with what the runtime says, where that does not work. */
export async function runTrial(pod: OciPod, { clock, runtime }: OciContext): Promise<void> {
  const dir = containerDir(pod.dir, "trial");
  const rootDir = path.join(pod.dir, "image");
  for (const each of [dir, rootDir]) mkdirSync(each, { recursive: true });
  const at = (name: string) => path.join(dir, name);
  writeFileSync(at("termination-log"), "");
  const config = { Labels: { [interpreterLabel]: Interpreters.own } };
  const container = await pod.start({
    name: "trial",
    run: 0,
    image: { digest: "sha256:0", rootDir, config },
    argv: ["/bin/true"],
    env: {},
    mounts: [],
    ports: [],
    logFile: at("0.log"),
    terminationLog: at("termination-log"),
    keepExitCode: false,
    hostName: "trial",
  });
  const cancel = clock.after(timeoutMs, () => container.kill("SIGKILL"));
  const { exitCode, message } = await container.exited;
  cancel();
  if (exitCode === 0) return;
  const why = message ?? readFileSync(at("0.log"), "utf8").slice(0, 1000);
  throw new Error(`${runtime.file} cannot run containers here: ${why}`);
}
