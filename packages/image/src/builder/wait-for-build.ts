/**
 * A builder that has loaded all of its program and waits for its build
 * (docs/adr/0031-warm-deployments-and-builds.md). It holds nothing of any Function while it waits, gets one build,
 * and ends with it.
 */
import { writeSync } from "node:fs";
import { Socket } from "node:net";
import { rehearse } from "./rehearsal.ts";

const maxMessage = 2 * 1024 * 1024;

interface Build {
  directory: string;
  env: Record<string, string>;
  args: string[];
}

/**
 * Where the variable `SPRY_WARM_FD` names a descriptor: waits there for one line, `{"directory": "/…", "env": {…}, "args": […]}` in JSON, and takes
 * these over. Returns "none" when the other side closes it without a word.
 */
export async function becomeBuild(): Promise<"mine" | "none"> {
  const descriptor = process.env["SPRY_WARM_FD"];
  if (descriptor === undefined) return "mine";
  // It is about speed alone: the build says itself what is wrong with this machine.
  await rehearse().catch(() => {});
  writeSync(Number(process.env["SPRY_READY_FD"]), "waiting\n");
  const line = await readLine(
    new Socket({ fd: Number(descriptor), readable: true, writable: false }),
  );
  if (line === "") return "none";
  const { directory, env, args } = JSON.parse(line) as Build;
  for (const name of Object.keys(process.env)) Reflect.deleteProperty(process.env, name);
  Object.assign(process.env, env);
  process.chdir(directory);
  process.argv.push(...args);
  return "mine";
}

async function readLine(socket: Socket): Promise<string> {
  let text = "";
  for await (const chunk of socket.setEncoding("utf8") as AsyncIterable<string>) {
    text += chunk;
    if (text.length > maxMessage) throw new Error("receiving a build: the line is too long");
    if (text.includes("\n")) break;
  }
  socket.destroy();
  return text.trim();
}
